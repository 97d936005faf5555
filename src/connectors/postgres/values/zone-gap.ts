const DAY_MS = 86_400_000
/** Days whose clocks are known; forgotten together, so that a column of random dates holds some hundred KB at most. */
const MOST_DAYS = 20_000

const LOCAL = /^\s*(\d{4})-(\d\d?)-(\d\d?)(?:[T ]\s*|\s+)(\d\d?):(\d\d)(?::(\d\d)(?:\.\d*)?)?\s*$/i

/**
 * Finds times without an offset that no clock of the zone shows, since it goes forward over them: PostgreSQL moves them on by an hour without a word.
 * Null for a zone whose clocks never change (UTC, an offset), and for names that only PostgreSQL knows.
 */
export function zoneGap(timeZone: string): ((text: string) => boolean) | null {
  if (/^(?:utc|gmt|z|etc\/.*|zulu)$/i.test(timeZone)) return null
  const offsetAt = offsetsOf(timeZone)
  if (offsetAt === null) return null
  const steady = new Map<number, boolean>()
  const isSteady = (day: number): boolean => {
    let known = steady.get(day)
    if (known === undefined) {
      if (steady.size >= MOST_DAYS) steady.clear()
      known = offsetAt((day - 1) * DAY_MS) === offsetAt((day + 2) * DAY_MS)
      steady.set(day, known)
    }
    return known
  }
  return (text) => {
    const match = LOCAL.exec(text)
    if (match === null) return false
    const [year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0] = match
      .slice(1)
      .map((part) => Number(part ?? 0))
    const local = Date.UTC(year, month - 1, day, hour, minute, second)
    if (year < 100 || isSteady(Math.floor(local / DAY_MS))) return false
    return [local - DAY_MS, local + DAY_MS].every((near) => {
      const offset = offsetAt(near)
      return offsetAt(local - offset) !== offset
    })
  }
}

/** What the zone's clocks are ahead of UTC at a moment, both in milliseconds; null where the name is unknown here. */
function offsetsOf(timeZone: string): ((utc: number) => number) | null {
  let format: Intl.DateTimeFormat
  try {
    format = new Intl.DateTimeFormat('en-US', {
      timeZone,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    })
  } catch {
    return null
  }
  return (utc) => {
    const part: Record<string, number> = {}
    for (const { type, value } of format.formatToParts(utc)) part[type] = Number(value)
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = part
    return Date.UTC(year, month - 1, day, hour, minute, second) - utc
  }
}
