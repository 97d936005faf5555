/**
 * The order of the extents of several lanes: one is written at a time, in the order in which their lanes asked, and they are sealed in that order, while
 * later ones are written already. As many wait as there are lanes.
 */
export class ExtentOrder {
  readonly #aborted: Promise<never>
  #written: Promise<void> = Promise.resolve()
  #sealed: Promise<void> = Promise.resolve()
  #endWriting: () => void = () => undefined

  /** The signal ends every wait, with its reason. */
  constructor(signal: AbortSignal) {
    this.#aborted = new Promise((_, reject) => {
      const onAbort = (): void => reject(signal.reason as Error)
      if (signal.aborted) onAbort()
      else signal.addEventListener('abort', onAbort, { once: true })
    })
    this.#aborted.catch(() => undefined)
  }

  /** Waits until the rows of all extents before are written. */
  async begin(): Promise<void> {
    const before = this.#written
    let end: () => void = () => undefined
    this.#written = new Promise((resolve) => {
      end = resolve
    })
    await Promise.race([before, this.#aborted])
    this.#endWriting = end
  }

  /** The rows of the extent in hand are written: the next one's turn. `done` when all before it are sealed; `next` when it is. */
  written(): { readonly done: Promise<void>; readonly next: () => void } {
    const before = this.#sealed
    let next: () => void = () => undefined
    this.#sealed = new Promise((resolve) => {
      next = resolve
    })
    this.#endWriting()
    return { done: Promise.race([before, this.#aborted]), next }
  }
}
