import type { ByteRange } from '../core/ports.ts'

/**
 * An iteration that ends at once when the signal says so, even where the source is silent. The source is then told to close, and
 * not waited for: one that waits for input may never answer.
 *
 * @throws the signal's reason
 */
export async function* untilAborted<T>(
  source: AsyncIterable<T>,
  signal: AbortSignal,
): AsyncGenerator<T, void, undefined> {
  signal.throwIfAborted()
  const iterator = source[Symbol.asyncIterator]()
  // Renewed for each item: racing against one long-lived promise would keep a reaction for every item that ever came.
  let breakOff: (reason: unknown) => void = () => undefined
  const onAbort = (): void => breakOff(signal.reason)
  signal.addEventListener('abort', onAbort, { once: true })
  let finished = false
  try {
    for (;;) {
      signal.throwIfAborted()
      const result = await new Promise<IteratorResult<T>>((resolve, reject) => {
        breakOff = reject
        iterator.next().then(resolve, reject)
      })
      if (result.done === true) {
        finished = true
        return
      }
      yield result.value
    }
  } finally {
    signal.removeEventListener('abort', onAbort)
    if (!finished) leave(source, iterator, signal.aborted)
  }
}

/** A Node stream is destroyed, since its iterator answers `return` only after the chunk it waits for. */
function leave<T>(source: AsyncIterable<T>, iterator: AsyncIterator<T>, aborted: boolean): void {
  if (aborted && 'destroy' in source && typeof source.destroy === 'function') source.destroy()
  iterator.return?.(undefined).catch(() => undefined)
}

/** The bytes of a range out of a sequence that begins at byte 0; leaves it at the range's end. Empty chunks are dropped. */
export async function* cut(
  chunks: AsyncIterable<Uint8Array>,
  range: ByteRange,
): AsyncGenerator<Uint8Array, void, undefined> {
  if (range.end <= range.start) return
  let at = 0
  for await (const chunk of chunks) {
    const from = Math.max(0, range.start - at)
    const to = Math.min(chunk.byteLength, range.end - at)
    at += chunk.byteLength
    if (to > from) yield from === 0 && to === chunk.byteLength ? chunk : chunk.subarray(from, to)
    if (at >= range.end) return
  }
}
