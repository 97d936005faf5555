/** Of `candidates` the one spelled most like `name`; null where none is within a third of its length. Case does not count. */
export function nearest(name: string, candidates: Iterable<string>): string | null {
  const wanted = name.toLowerCase()
  let best: string | null = null
  let bestDistance = Math.max(2, Math.floor(wanted.length / 3)) + 1
  for (const candidate of candidates) {
    const distance = editDistance(wanted, candidate.toLowerCase(), bestDistance)
    if (distance < bestDistance) {
      bestDistance = distance
      best = candidate
    }
  }
  return best
}

/** Levenshtein's distance, or `limit` where it is no less. */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i += 1) {
    const current = [i]
    for (let j = 1; j <= b.length; j += 1) {
      const replace = (previous[j - 1] ?? limit) + (a[i - 1] === b[j - 1] ? 0 : 1)
      current.push(Math.min(replace, (previous[j] ?? limit) + 1, (current[j - 1] ?? limit) + 1))
    }
    previous = current
  }
  return Math.min(previous[b.length] ?? limit, limit)
}
