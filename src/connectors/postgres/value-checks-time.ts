/** The date and time types, by what they can't hold. */
export type TimeType = 'date' | 'time' | 'timetz' | 'timestamp' | 'timestamptz'

/** What a date or time literal says, as far as COPY may drop or move some of it. */
interface Reading {
  date: boolean
  time: boolean
  /** The time is not 00:00:00. */
  laterThanMidnight: boolean
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
const MONTH = /^(jan(uary)?|feb(ruary)?|mar(ch)?|apr(il)?|may|june?|july?|aug(ust)?|sept?|september|oct(ober)?|nov(ember)?|dec(ember)?)$/
const FILLER = /^(mon(day)?|tue(s|sday)?|wed(s|nesday)?|weds|thu(r|rs|rsday)?|fri(day)?|sat(urday)?|sun(day)?|ad|bc|am|pm|at|on)$/

const TOKENS = {
  time: /(\d+):(\d+)(?::(\d+))?(?:\.(\d*))?/y,
  date: /\d+([-/.])(?:\d+|[a-z]+)\1\d+|[a-z]+([-/])\d+\2\d+|\d+-\d{3}(?!\d)/y,
  fields: /y\d+m\d+d\d+/y,
  julian: /j(?:d|ulian)?\s*(\d+)(?:\.(\d*))?/y,
  compact: /t\s*(\d\d)(\d\d)?(\d\d)?(?:\.(\d*))?(?![\d:])/y,
  letterT: /t(?=\s*\d)/y,
  offset: /[+-]\s*\d+(?::\d+)*(?:\.\d*)?/y,
  number: /(\d+)(?:\.(\d*))?/y,
  word: /[+-]?[a-z][a-z/_]*(?:[+-]\d+(?::\d+)*)?/y,
  other: /[^a-z0-9+-]/y,
}

function read(text: string): Reading | null {
  const source = text.trim().toLowerCase()
  const reading: Reading = {
    date: false,
    time: false,
    laterThanMidnight: false,
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
  settleBareNumbers(reading)
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
  if (digits > 0 || parts.some((part) => Number(part) > 0)) reading.laterThanMidnight = true
}

function addWord(reading: Reading, word: string): void {
  if (word === 'now' || word === 'today' || word === 'tomorrow' || word === 'yesterday') reading.relative = true
  else if (word === 'epoch' || /^[+-]?inf(inity)?$/.test(word)) reading.special = true
  else if (word === 'allballs') reading.time = true
  else if (MONTH.test(word)) reading.month = true
  else if (word === 'pm') reading.laterThanMidnight = true
  else if (!FILLER.test(word)) reading.zone = true
}

/** Digits without a sign of what they are: parts of a date beside a month's name, else a date of 6 or 8 digits, then a time. */
function settleBareNumbers(reading: Reading): void {
  const { bareNumbers } = reading
  if (reading.month) {
    reading.date = true
    return
  }
  for (const [index, number] of bareNumbers.entries()) {
    const [whole = '', fraction] = number.split('.')
    const isTime = reading.date || index > 0 || (whole.length === 6 && fraction !== undefined)
    if (isTime) {
      addTime(reading, whole.match(/\d\d?/g) ?? [], fraction)
      reading.sixty ||= whole.length === 6 && whole.endsWith('60')
    } else reading.date = true
  }
}

function significant(fraction: string): number {
  let length = fraction.length
  while (length > 0 && fraction.charCodeAt(length - 1) === 48) length -= 1
  return length
}

/**
 * What PostgreSQL would drop from or move in a literal, said for people; null where it stores all of it (or refuses it by itself).
 * `precision` is how many digits of a second's fraction the column keeps.
 */
export function timeObjection(text: string, type: TimeType, precision: number): string | null {
  const reading = read(text)
  if (reading === null) return null
  if (reading.relative) return 'means another time whenever it is loaded'
  if (reading.special) return reading.date || reading.time || reading.zone ? 'has more than the word, which would be dropped' : null
  if (type === 'date') return dateObjection(reading)
  if (reading.sixty) return 'has 60 seconds, which would become the next minute'
  if (reading.fraction > precision) return `has more digits after the second's point than the ${precision} that are kept`
  if (type === 'time' || type === 'timetz') return clockObjection(reading, type, text)
  if (reading.dayFraction > precision) return 'has a fraction of a day finer than what is kept'
  return type === 'timestamp' && reading.zone ? 'has an offset or a time zone, which would be dropped' : null
}

function dateObjection(reading: Reading): string | null {
  if (reading.laterThanMidnight || reading.sixty || reading.dayFraction > 0) return 'has a time, which would be dropped'
  return reading.zone ? 'has an offset or a time zone, which would be dropped' : null
}

function clockObjection(reading: Reading, type: TimeType, text: string): string | null {
  // Six digits alone are a time to these types.
  const digitsOnly = /^\s*\d{4,6}\s*$/.test(text)
  if (digitsOnly) return /60\s*$/.test(text) && text.trim().length === 6 ? 'has 60 seconds, which would become the next minute' : null
  if (reading.date || reading.dayFraction > 0) return 'has a date, which would be dropped'
  return type === 'time' && reading.zone ? 'has an offset or a time zone, which would be dropped' : null
}
