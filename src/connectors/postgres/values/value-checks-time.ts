/** The date and time types, by what they can't hold. */
export type TimeType = 'date' | 'time' | 'timetz' | 'timestamp' | 'timestamptz'

/** What a date or time literal says, as far as COPY may drop or move some of it. */
interface Reading {
  date: boolean
  time: boolean
  /** Hours of the time, and whether anything of it below the hour is not 0. */
  hours: number
  belowHour: boolean
  am: boolean
  /** An offset or the name of a zone. */
  zone: boolean
  /** Digits of the fraction without zeros at its end. */
  fraction: number
  /** Seconds are 60, which PostgreSQL makes 0 of the next minute. */
  sixty: boolean
  /** `now`, `today`, `tomorrow`, `yesterday`. */
  relative: boolean
  /** `epoch`, `infinity`. */
  special: boolean
  /** A fraction of a day behind a Julian day. */
  dayFraction: number
  bareNumbers: string[]
  month: boolean
}

/** Words that are no zone: names of months and days, and fillers (src/backend/utils/adt/datetime.c, datetktbl). */
const MONTH =
  /^(jan(uary)?|feb(ruary)?|mar(ch)?|apr(il)?|may|june?|july?|aug(ust)?|sept?|september|oct(ober)?|nov(ember)?|dec(ember)?)$/
const FILLER =
  /^(mon(day)?|tue(s|sday)?|wed(s|nesday)?|weds|thu(r|rs|rsday)?|fri(day)?|sat(urday)?|sun(day)?|ad|bc|am|pm|at|on)$/

const TOKENS = {
  time: /(\d+):(\d+)(?::(\d+))?(?:\.(\d*))?/y,
  date: /\d+([-/.])(?:\d+|[a-z]+)\1\d+|[a-z]+([-/])\d+\2\d+|\d+-\d{3}(?!\d)/y,
  fields: /y\d+m\d+d\d+/y,
  julian: /j(?:d|ulian)?\s*(\d+)(?:\.(\d*))?/y,
  compact: /t\s*(\d\d)(\d\d)?(\d\d)?(?:\.(\d*))?(?![\d:])/y,
  letterT: /t(?=\s*\d)/y,
  offset: /[+-]\s*\d+(?::\d+)*(?:\.\d*)?/y,
  number: /(\d+)(?:\.(\d*))?/y,
  /** A word with digits behind a point (`AM.5`) is taken for a zone. */
  word: /[+-]?[a-z][a-z/_]*(?:[+-]\d+(?::\d+)*)?(?:\.\d+)?/y,
  other: /[^a-z0-9+-]/y,
}

function read(text: string, isClock: boolean): Reading | null {
  const source = text.trim().toLowerCase()
  const reading: Reading = {
    date: false,
    time: false,
    hours: 0,
    belowHour: false,
    am: false,
    zone: false,
    fraction: 0,
    sixty: false,
    relative: false,
    special: false,
    dayFraction: 0,
    bareNumbers: [],
    month: false,
  }
  let at = 0
  const match = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at
    const found = pattern.exec(source)
    if (found !== null) at = pattern.lastIndex
    return found
  }
  while (at < source.length) {
    if (!readToken(reading, match)) return null
  }
  settleBareNumbers(reading, isClock)
  return reading
}

function readToken(reading: Reading, match: (pattern: RegExp) => RegExpExecArray | null): boolean {
  let found: RegExpExecArray | null
  if ((found = match(TOKENS.time)) !== null) {
    const [, first = '', second = '', third, fraction] = found
    addTime(reading, [first, second, third ?? ''], fraction)
    // `mm:ss.fraction` is what PostgreSQL makes of two numbers with a fraction.
    reading.sixty ||= Number(third ?? (fraction === undefined ? '0' : second)) === 60
  } else if (match(TOKENS.date) !== null || match(TOKENS.fields) !== null) reading.date = true
  else if ((found = match(TOKENS.julian)) !== null) {
    reading.date = true
    reading.dayFraction = significant(found[2] ?? '')
  } else if ((found = match(TOKENS.compact)) !== null) {
    addTime(reading, [found[1] ?? '', found[2] ?? '', found[3] ?? ''], found[4])
    reading.sixty ||= found[3] === '60'
  } else if (match(TOKENS.letterT) !== null) return true
  else if (match(TOKENS.offset) !== null) reading.zone = true
  else if ((found = match(TOKENS.number)) !== null) reading.bareNumbers.push(found[0])
  else if ((found = match(TOKENS.word)) !== null) addWord(reading, found[0])
  else return match(TOKENS.other) !== null || match(/[+-]/y) !== null
  return true
}

function addTime(reading: Reading, parts: readonly string[], fraction: string | undefined): void {
  reading.time = true
  const digits = significant(fraction ?? '')
  reading.fraction = Math.max(reading.fraction, digits)
  reading.hours = Math.max(reading.hours, Number(parts[0] ?? '0'))
  if (digits > 0 || parts.slice(1).some((part) => Number(part) > 0)) reading.belowHour = true
}

function addWord(reading: Reading, word: string): void {
  if (word === 'now' || word === 'today' || word === 'tomorrow' || word === 'yesterday') reading.relative = true
  else if (word === 'epoch' || /^[+-]?inf(inity)?$/.test(word)) reading.special = true
  else if (word === 'allballs') reading.time = reading.zone = true
  else if (MONTH.test(word)) reading.month = true
  else if (word === 'am') reading.am = true
  else if (word === 'pm') reading.hours += 12
  else if (!FILLER.test(word)) reading.zone = true
}

/** Digits without a sign of what they are: two are a date's beside the name of a month; else a date, or a clock's time, comes first, and a time after it. */
function settleBareNumbers(reading: Reading, isClock: boolean): void {
  let dateParts = reading.month ? 2 : reading.date || isClock ? 0 : 1
  if (reading.month) reading.date = true
  for (const number of reading.bareNumbers) {
    const [whole = '', fraction] = number.split('.')
    if (dateParts > 0 && (fraction === undefined || !reading.month)) {
      dateParts -= 1
      reading.date = true
    } else if (isClock && whole.length !== 4 && whole.length !== 6) reading.date = true
    else {
      addTime(reading, whole.match(/\d\d?/g) ?? [], fraction)
      reading.sixty ||= whole.length === 6 && whole.endsWith('60')
    }
  }
}

function significant(fraction: string): number {
  let length = fraction.length
  while (length > 0 && fraction.charCodeAt(length - 1) === 48) length -= 1
  return length
}

/** `01/02/03`: year, month and day in whatever order is usual where it comes from; PostgreSQL would take the one that DateStyle says. */
const SHORT_DATE = /(?<![\d:.])\d{1,2}([/.])\d{1,2}\1\d{1,2}(?![\d:.])/

/**
 * What PostgreSQL would drop from or move in a literal, said for people; null where it stores all of it (or refuses it by itself).
 * `precision` is how many digits of a second's fraction the column keeps.
 */
export function timeObjection(text: string, type: TimeType, precision: number): string | null {
  const isClock = type === 'time' || type === 'timetz'
  const reading = read(text, isClock)
  if (reading === null) return null
  if (reading.relative) return 'means another time whenever it is loaded'
  if (reading.special)
    return reading.date || reading.time || reading.zone ? 'has more than the word, which would be dropped' : null
  if (!isClock && SHORT_DATE.test(text))
    return 'has a year of two digits, and does not say which of its numbers that is'
  if (type === 'date') return dateObjection(reading)
  if (reading.sixty) return 'has 60 seconds, which would become the next minute'
  if (reading.fraction > precision)
    return `has more digits after the second's point than the ${precision} that are kept`
  if (isClock) return clockObjection(reading, type)
  if (reading.dayFraction > precision) return 'has a fraction of a day finer than what is kept'
  return type === 'timestamp' && reading.zone ? 'has an offset or a time zone, which would be dropped' : null
}

function dateObjection(reading: Reading): string | null {
  // 12 AM is midnight.
  const midnight = !reading.belowHour && (reading.hours === 0 || (reading.am && reading.hours === 12))
  if (!midnight || reading.sixty || reading.dayFraction > 0) return 'has a time, which would be dropped'
  return reading.zone ? 'has an offset or a time zone, which would be dropped' : null
}

function clockObjection(reading: Reading, type: TimeType): string | null {
  if (reading.date || reading.dayFraction > 0) return 'has a date, which would be dropped'
  return type === 'time' && reading.zone ? 'has an offset or a time zone, which would be dropped' : null
}
