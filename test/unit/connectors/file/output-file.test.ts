import { describe, expect, it } from 'vitest'
import type { SinkRequest } from '../../../../src/connectors/connector.ts'
import { createOutputFile } from '../../../../src/connectors/file/output-file.ts'
import { PartGate } from '../../../../src/connectors/file/part-gate.ts'
import type { OutputTarget } from '../../../../src/connectors/file/output-target.ts'
import { SluiceError } from '../../../../src/core/errors.ts'
import type { ObjectInfo, ObjectWriter, SinkContext, WritableStore } from '../../../../src/core/ports.ts'

const PART = 100
const o = { signal: new AbortController().signal }

/** A store that writes down what is asked of it. `opening`: what `openWriter` waits for. */
function place(opening: Promise<void> = Promise.resolve()): { target: OutputTarget; log: string[] } {
  const log: string[] = []
  const writer: ObjectWriter = {
    token: () => 'token',
    present: [],
    writePart: ({ number, offset, bytes }) => {
      const size = bytes.reduce((sum, chunk) => sum + chunk.byteLength, 0)
      log.push(`part ${number} at ${offset}: ${size}`)
      return Promise.resolve({ number, offset, bytes: size, etag: `${number}` })
    },
    complete: (parts) => {
      log.push(`complete ${parts.length}`)
      const info: Partial<ObjectInfo> = { etag: 'e' }
      return Promise.resolve(info as ObjectInfo)
    },
    abort: () => {
      log.push('abort')
      return Promise.resolve()
    },
  }
  const store: Partial<WritableStore> = {
    openWriter: async (_key, { size }) => {
      log.push(`open ${size}`)
      await opening
      return writer
    },
  }
  const context: Partial<SinkContext> = {
    recorded: [],
    record: async (entry) => {
      await new Promise(setImmediate)
      log.push(`record ${String(Reflect.get(Object(entry), 'kind'))}`)
    },
  }
  const request: Partial<SinkRequest> = { options: {}, context: context as SinkContext }
  const target = createOutputFile(request as SinkRequest, {
    ...{ store: store as WritableStore, key: 'k', url: 's3://b/k' },
    ...{ gate: new PartGate(2), partBytes: PART, held: { bytes: 0 } },
  })
  return { target, log }
}

describe('an output of parts', () => {
  it('is opened when half of its first part is there, and nothing is written before its token is recorded', async () => {
    const { target, log } = place()
    await target.write([new Uint8Array(PART / 2 - 1)], o)
    expect(log).toEqual([])
    await target.write([new Uint8Array(1)], o)
    expect(log).toEqual(['open null'])
    await target.write([new Uint8Array(PART / 2), new Uint8Array(PART + 1)], o)
    await target.close(o)
    await target.complete(o)
    const parts = ['part 1 at 0: 100', 'part 2 at 100: 100', 'part 3 at 200: 1']
    expect(log).toEqual(['open null', 'record token', ...parts, 'complete 3', 'record completed'])
  })

  it('that is small is opened with its size, at its end', async () => {
    const { target, log } = place()
    await target.write([new Uint8Array(PART / 2 - 1)], o)
    await target.close(o)
    await target.complete(o)
    expect(log).toEqual(['open 49', 'record token', 'part 1 at 0: 49', 'complete 1', 'record completed'])
  })

  it('that ends between half a part and one is what was opened', async () => {
    const { target, log } = place()
    await target.write([new Uint8Array(PART - 1)], o)
    await target.close(o)
    await target.complete(o)
    expect(log).toEqual(['open null', 'record token', 'part 1 at 0: 99', 'complete 1', 'record completed'])
  })

  it('that could not be opened says so when a part is there', async () => {
    const error = new SluiceError('SLUICE_ACCESS_DENIED', 'no')
    const { target, log } = place(Promise.reject(error))
    await target.write([new Uint8Array(PART - 1)], o)
    await new Promise(setImmediate)
    await expect(target.write([new Uint8Array(1)], o)).rejects.toBe(error)
    await target.abort()
    expect(log).toEqual(['open null'])
  })

  it('leaves nothing behind when it ends while it opens', async () => {
    let opened = (): void => undefined
    const { target, log } = place(
      new Promise((resolve) => {
        opened = resolve
      }),
    )
    await target.write([new Uint8Array(PART - 1)], o)
    const aborted = target.abort()
    opened()
    await aborted
    expect(log).toEqual(['open null', 'record token', 'abort'])
  })
})
