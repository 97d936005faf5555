/** Those who wait for a change, and look then whether it is the one that they want. As many wait as there are callers. */
export class WakeUps {
  readonly #waiting = new Set<() => void>()

  /** Until the next `wake`, or for so many milliseconds at most. */
  next(longestMs?: number): Promise<void> {
    return new Promise((resolve) => {
      const wakeUp = (): void => {
        clearTimeout(timer)
        this.#waiting.delete(wakeUp)
        resolve()
      }
      const timer = longestMs === undefined ? undefined : setTimeout(wakeUp, longestMs)
      this.#waiting.add(wakeUp)
    })
  }

  /** Wakes those who wait now; who waits again waits for the next. */
  wake(): void {
    const waiting = [...this.#waiting]
    this.#waiting.clear()
    for (const wakeUp of waiting) wakeUp()
  }
}
