const TAKEN = 0
const UNDER_WAY = 1

/** Whether a table may have got an item: by one window of requests, or by those of all threads together where they share the cells. */
export class PutTrace {
  /** Two cells: whether an item was taken or an answer was lost; requests under way, which stay so where a thread is ended. */
  readonly #cells: Int32Array

  constructor(cells: Int32Array = new Int32Array(2)) {
    this.#cells = cells
  }

  get mayHavePut(): boolean {
    return Atomics.load(this.#cells, TAKEN) > 0 || Atomics.load(this.#cells, UNDER_WAY) > 0
  }

  /** A request goes. */
  sent(): void {
    Atomics.add(this.#cells, UNDER_WAY, 1)
  }

  /** It was answered, or broke. `nothing`: the server surely took none of its items. */
  settled(o: { readonly nothing: boolean }): void {
    if (!o.nothing) Atomics.store(this.#cells, TAKEN, 1)
    Atomics.sub(this.#cells, UNDER_WAY, 1)
  }
}
