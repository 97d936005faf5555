import { SluiceError } from '../../../core/errors.ts'

/** Limits of DynamoDB's numbers (AWS, "Supported data types and naming rules"): 38 significant digits, 1E-130 to 9.99…E+125. */
const MOST_DIGITS = 38
const LEAST_EXPONENT = -130
const MOST_EXPONENT = 125

const NUMBER = /^([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,9}))?$/

/**
 * The one way to write a number that all ways to write the same number share: what DynamoDB compares keys by.
 *
 * @throws SLUICE_VALUE where DynamoDB could not hold it exactly
 */
export function canonicalNumber(text: string): string {
  const match = NUMBER.exec(text)
  const [, sign = '', whole = '', fraction = '', power = '0'] = match ?? []
  if (match === null || whole.length + fraction.length === 0) throw refuse(text, 'is no number')
  const leading = (whole + fraction).replace(/^0+/, '')
  const digits = leading.replace(/0+$/, '')
  if (digits === '') return '0'
  if (digits.length > MOST_DIGITS) throw refuse(text, `has more than ${MOST_DIGITS} significant digits`)
  // Of the first significant digit.
  const exponent = Number(power) + whole.length - 1 - ((whole + fraction).length - leading.length)
  if (exponent < LEAST_EXPONENT || exponent > MOST_EXPONENT)
    throw refuse(text, `is not within 1E${LEAST_EXPONENT} and 9.99E+${MOST_EXPONENT}`)
  return `${sign === '-' ? '-' : ''}${digits}e${exponent}`
}

/** The number as it is sent: without a plus, which not every server takes. @throws SLUICE_VALUE where DynamoDB could not hold it exactly */
export function checkNumber(text: string): string {
  if (isPlain(text)) return text
  canonicalNumber(text)
  return text.startsWith('+') ? text.slice(1) : text
}

/** Digits, a minus before them, a point among them, too few for a limit: what nearly all numbers are. */
function isPlain(text: string): boolean {
  const { length } = text
  let at = text.charCodeAt(0) === 45 ? 1 : 0
  if (length - at > MOST_DIGITS) return false
  let digits = 0
  let points = 0
  for (; at < length; at += 1) {
    const code = text.charCodeAt(at)
    if (code >= 48 && code <= 57) digits += 1
    else if (code === 46) points += 1
    else return false
  }
  return digits > 0 && points < 2
}

function refuse(text: string, why: string): SluiceError {
  return new SluiceError('SLUICE_VALUE', `${shown(text)} ${why}`, {
    hint: 'mend the value, or load it as text: --type column=S',
  })
}

/** A value for a message: at most 40 characters of it. */
export function shown(text: string): string {
  return JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text)
}
