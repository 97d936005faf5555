import { FAST_REACH, fastDate, fastNumeric, fastTime, fastTimestamp, fastZone, KIND } from './value-fast.ts'

/** A column that is looked at, and how many that are not come before it. */
export interface ScreenStep {
  readonly skip: number
  readonly column: number
  readonly kind: number
  readonly bound: number
}

const LF = 10
const CR = 13

/** The columns that have a check, as steps through a record. */
export function stepsOf(kinds: ArrayLike<number>, bounds: ArrayLike<number>): ScreenStep[] {
  const steps: ScreenStep[] = []
  let before = 0
  for (let column = 0; column < kinds.length; column += 1) {
    const kind = kinds[column] ?? KIND.skip
    if (kind === KIND.skip) continue
    steps.push({ skip: column - before, column, kind, bound: bounds[column] ?? 0 })
    before = column + 1
  }
  return steps
}

/**
 * Whether nothing in records without quotes can be wrong: 50–100 ns a record of five columns, about half of what the exact walk
 * needs. Values in an uncommon spelling go to `isFine` (their column, start and end). Records with too few fields make it false, and what they are is told by the exact walk.
 */
export function isClean(
  bytes: Uint8Array,
  steps: readonly ScreenStep[],
  o: { readonly delimiter: number; readonly isFine: (column: number, start: number, end: number) => boolean },
): boolean {
  const { delimiter } = o
  const length = bytes.length
  const view = new DataView(bytes.buffer, bytes.byteOffset, length)
  const pattern = delimiter * 0x01010101
  let at = 0
  while (at < length) {
    let byte = delimiter
    for (let index = 0; index < steps.length; index += 1) {
      const step = steps[index]
      if (step === undefined || byte !== delimiter) return false
      if (step.skip > 0) at = skipFields(view, at, { count: step.skip, pattern })
      const start = at
      let end = at + FAST_REACH > length ? -1 : fastEnd(view, at, step)
      byte = end < 0 ? 0 : view.getUint8(end)
      if (byte !== delimiter && byte !== LF && byte !== CR) {
        end = endOf(view, start, delimiter)
        byte = end < length ? view.getUint8(end) : LF
        if (!o.isFine(step.column, start, end)) return false
      }
      at = end + 1
    }
    if (byte === CR) {
      if (at < length && view.getUint8(at) !== LF) return false
      at += 1
    } else if (byte === delimiter) at = skipFields(view, at, { count: 1, pattern: 0x0a0a0a0a })
  }
  return true
}

/** Offset behind the `count`-th of the bytes that `pattern` repeats four times, or the length. */
function skipFields(view: DataView, from: number, { count, pattern }: { count: number; pattern: number }): number {
  const length = view.byteLength
  let at = from
  let left = count
  for (; at + 4 <= length; at += 4) {
    const difference = view.getInt32(at, true) ^ pattern
    // 0x80 in exactly those bytes that are zero.
    let hits = ~(((difference & 0x7f7f7f7f) + 0x7f7f7f7f) | difference | 0x7f7f7f7f)
    while (hits !== 0) {
      left -= 1
      if (left === 0) return at + ((31 - Math.clz32(hits & -hits)) >> 3) + 1
      hits &= hits - 1
    }
  }
  for (; at < length; at += 1) {
    if (view.getUint8(at) === (pattern & 0xff)) left -= 1
    if (left === 0) return at + 1
  }
  return length
}

/** Offset of the delimiter, CR LF or LF that ends a field. */
function endOf(view: DataView, from: number, delimiter: number): number {
  const length = view.byteLength
  let at = from
  for (; at < length; at += 1) {
    const byte = view.getUint8(at)
    if (byte === delimiter || byte === LF || (byte === CR && at + 1 < length && view.getUint8(at + 1) === LF)) break
  }
  return at
}

/** Offset behind a value in the common spelling, or -1; see value-fast.ts. */
export function fastEnd(
  view: DataView,
  at: number,
  { kind, bound }: { readonly kind: number; readonly bound: number },
): number {
  switch (kind) {
    case KIND.numeric:
      return fastNumeric(view, at, bound)
    case KIND.timestamp:
      return fastTimestamp(view, at, bound)
    case KIND.timestamptz:
      return fastZone(view, fastTimestamp(view, at, bound))
    case KIND.date:
      return fastDate(view, at)
    case KIND.time:
      return fastTime(view, at, bound)
    case KIND.timetz:
      return fastZone(view, fastTime(view, at, bound))
    default:
      return -1
  }
}
