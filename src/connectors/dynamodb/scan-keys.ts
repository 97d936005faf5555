import { appendFileSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { SluiceError } from '../../core/errors.ts'
import { type Answer, answerOf } from './answer.ts'

/** What no resume asked for in this time is taken for forgotten. */
const KEPT_MS = 30 * 24 * 60 * 60_000

/**
 * Where the pages of a Scan end: the key behind which a segment can be taken up again, by the number of rows before it. A Position has no
 * room for a key, so they are kept in a file of the spool folder, a line a page (some 150 bytes a MB read), written before the page is given out. Lines that a crash of the machine took with it make their places unknown, and never wrong.
 */
export class ScanKeys {
  readonly #folder: string
  readonly #path: string
  #made = false

  /** `id` is the scan's own, made by its plan. */
  constructor(folder: string, id: string) {
    this.#folder = folder
    this.#path = join(folder, `scan-${id}.jsonl`)
  }

  /** `key` is null behind the last page of a segment. */
  add(segment: number, row: number, key: Answer | null): void {
    if (!this.#made) {
      mkdirSync(this.#folder, { recursive: true, mode: 0o700 })
      removeOld(this.#folder)
      this.#made = true
    }
    appendFileSync(this.#path, `${JSON.stringify([segment, row, key])}\n`, { mode: 0o600 })
  }

  /** Null: the segment ends there. @throws SLUICE_STATE where the place is not known */
  find(segment: number, row: number): Answer | null {
    const wanted = `[${segment},${row},`
    const line = this.#lines().findLast((one) => one.startsWith(wanted) && one.endsWith(']'))
    const parsed: unknown = line === undefined ? null : JSON.parse(line)
    if (!Array.isArray(parsed))
      throw new SluiceError(
        'SLUICE_STATE',
        `where row ${row} of segment ${segment} of the Scan ends is not known any more`,
        {
          hint: 'start over with --new-job',
        },
      )
    return parsed[2] === null ? null : answerOf(parsed[2], 'key')
  }

  #lines(): string[] {
    try {
      return readFileSync(this.#path, 'utf8').split('\n')
    } catch {
      return []
    }
  }
}

function removeOld(folder: string): void {
  for (const name of readdirSync(folder)) {
    if (!/^scan-.*\.jsonl$/.test(name)) continue
    const path = join(folder, name)
    if (Date.now() - statSync(path).mtimeMs > KEPT_MS) rmSync(path, { force: true })
  }
}
