import { WakeUps } from '../../../core/wake-ups.ts'

/**
 * The order of the extents of several lanes: one is written at a time, in the order in which their lanes asked, and they are sealed in that order, while
 * later ones are written already. As many wait as there are lanes.
 */
export class ExtentOrder {
  readonly #signal: AbortSignal
  readonly #changes = new WakeUps()
  #begun = 0
  #written = 0
  #sealed = 0

  /** The signal ends every wait, with its reason. */
  constructor(signal: AbortSignal) {
    this.#signal = signal
    signal.addEventListener('abort', () => this.#changes.wake(), { once: true })
  }

  /** Waits until the rows of all extents before are written. */
  async begin(): Promise<void> {
    const turn = this.#begun
    this.#begun += 1
    await this.#until(() => this.#written === turn)
  }

  /** The rows of the extent in hand are written: the next one's turn. `done` once all before it are sealed; `next` says that it is, too. */
  written(): { readonly done: Promise<void>; readonly next: () => void } {
    const turn = this.#written
    this.#written += 1
    this.#changes.wake()
    const done = this.#until(() => this.#sealed === turn)
    // Who ends before it looks has the reason from elsewhere.
    done.catch(() => undefined)
    return {
      done,
      next: () => {
        this.#sealed += 1
        this.#changes.wake()
      },
    }
  }

  async #until(isTurn: () => boolean): Promise<void> {
    for (;;) {
      this.#signal.throwIfAborted()
      if (isTurn()) return
      await this.#changes.next()
    }
  }
}
