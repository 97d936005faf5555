/** Milliseconds of the machine's steady clock, which is the same in all threads of a process; performance.now() begins anew in each. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

/** When something last got on, of one window of requests or of all threads together where they share the cell. */
export class Progress {
  readonly #cell: BigInt64Array

  /** The cell holds microseconds; one of a SharedArrayBuffer is shared. */
  constructor(cell: BigInt64Array = new BigInt64Array(1)) {
    this.#cell = cell
    this.note()
  }

  note(): void {
    Atomics.store(this.#cell, 0, process.hrtime.bigint() / 1000n)
  }

  /** How long ago that is, in milliseconds. */
  sinceMs(): number {
    return Number(process.hrtime.bigint() / 1000n - Atomics.load(this.#cell, 0)) / 1000
  }
}
