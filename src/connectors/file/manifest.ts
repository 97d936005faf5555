import type { Output } from '../../core/job.ts'
import type { Abortable, FormatName, WritableStore } from '../../core/ports.ts'
import { redactUrl } from '../../core/redact.ts'
import type { SinkRequest } from '../connector.ts'
import { openWritableStore, parseEndpoint } from './endpoint.ts'
import { isPrefix, outputUrl } from './output-name.ts'
import { createOutputFile } from './output-file.ts'
import type { OutputTarget } from './output-target.ts'
import { MANIFEST_ID } from './output-set.ts'
import { PartGate } from './part-gate.ts'
import { SluiceError } from '../../core/errors.ts'
import { readUploads } from './upload-journal.ts'

/** The list of an output's files, which is written when all of them are there. */
export class Manifest {
  readonly #request: SinkRequest
  readonly #store: WritableStore
  readonly #file: OutputTarget
  readonly #id: string
  #skipped = false
  #done = false

  private constructor(request: SinkRequest, o: { store: WritableStore; file: OutputTarget; id: string }) {
    this.#request = request
    this.#store = o.store
    this.#file = o.file
    this.#id = o.id
  }

  /** @throws SLUICE_USAGE where nothing can be written there */
  static async open(request: SinkRequest, url: string): Promise<Manifest> {
    const endpoint = parseEndpoint(url)
    if (isPrefix(endpoint))
      throw new SluiceError('SLUICE_USAGE', '--manifest wants the name of a file', { where: { url } })
    const store = await openWritableStore(endpoint, request)
    const { key } = endpoint
    const id = `${MANIFEST_ID}${key}`
    const place = { store, key, url: outputUrl(endpoint, key), gate: new PartGate('auto'), held: { bytes: 0 } }
    const partBytes = store.partBytes(null, null)
    return new Manifest(request, { store, id, file: createOutputFile(request, { ...place, partBytes, journalId: id }) })
  }

  /** Looks for what is in the way. @throws SLUICE_EXISTS */
  async begin(o: Abortable): Promise<void> {
    await this.#discard(o)
    await this.#store.checkPlace(this.#file.key, o)
    this.#skipped = (await this.#file.begin(o)) === 'skip'
  }

  /** `{"entries":[{"url":…,"mandatory":true,"meta":{"content_length":…,"record_count":…},"etag":…}],…}`, as Amazon Redshift's COPY takes it. Idempotent. */
  async write(outputs: readonly Output[], o: Abortable & { format: FormatName }): Promise<void> {
    if (this.#skipped || this.#done) return
    const entries = outputs.map(({ url, bytes, rows, etag }) => ({
      url,
      mandatory: true,
      meta: { content_length: bytes, ...(rows === null ? {} : { record_count: rows }) },
      etag,
    }))
    const { context, sourceUrl } = this.#request
    const content = { entries, jobId: context.jobId, source: redactUrl(sourceUrl), format: o.format }
    await this.#file.write([Buffer.from(`${JSON.stringify(content, null, 2)}\n`)], o)
    await this.#file.close(o)
    await this.#file.complete(o)
    this.#done = true
  }

  async abort(o: Abortable): Promise<void> {
    await this.#file.abort().catch(() => undefined)
    await this.#discard(o).catch(() => undefined)
  }

  close(): Promise<void> {
    return this.#store.close()
  }

  async #discard(o: Abortable): Promise<void> {
    const journal = readUploads(this.#request.context.recorded).get(this.#id)
    if (journal?.completed === null) for (const intent of journal.intents) await this.#store.discard(intent, o)
  }
}
