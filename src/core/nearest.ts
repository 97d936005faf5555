/**
 * The candidate that a mistyped word most likely means, or null where none is near: at most a third of its letters wrong, or `slips` of a short one's
 * (a neighbouring pair swapped counts as one), or the only one that it begins. Case does not count.
 */
export function nearest(word: string, candidates: readonly string[], slips = 1): string | null {
  const wanted = word.toLowerCase()
  let best: string | null = null
  let bestDistance = Math.max(slips, Math.floor(wanted.length / 3)) + 1
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - wanted.length) >= bestDistance) continue
    const distance = editDistance(wanted, candidate.toLowerCase())
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  if (best !== null || wanted.length < 3) return best
  const begun = candidates.filter((candidate) => candidate.toLowerCase().startsWith(wanted))
  return begun.length === 1 ? (begun[0] ?? null) : null
}

/** Optimal string alignment: insert, delete, substitute, swap neighbours. Words here are some tens of letters at most. */
export function editDistance(a: string, b: string): number {
  let before: number[] = []
  let previous = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i += 1) {
    const current = [i]
    for (let j = 1; j <= b.length; j += 1) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1
      let cost = Math.min((previous[j] ?? 0) + 1, (current[j - 1] ?? 0) + 1, (previous[j - 1] ?? 0) + same)
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        cost = Math.min(cost, (before[j - 2] ?? 0) + 1)
      current.push(cost)
    }
    before = previous
    previous = current
  }
  return previous[b.length] ?? 0
}
