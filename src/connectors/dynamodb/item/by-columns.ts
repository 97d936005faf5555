/** Sets of columns that are remembered at most: JSON may bring ever new keys. */
export const MOST_COLUMN_SETS = 1000

/** What belongs to a set of columns, made once: files under a prefix, or keys of JSON, may differ. */
export class ByColumns<T> {
  readonly #known = new Map<string, T>()

  get(columns: readonly string[], make: () => T): T {
    const name = columns.join('\0')
    const found = this.#known.get(name)
    if (found !== undefined) return found
    if (this.#known.size >= MOST_COLUMN_SETS) this.#known.clear()
    const made = make()
    this.#known.set(name, made)
    return made
  }
}
