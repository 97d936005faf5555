import type { Value } from '../core/batch.ts'
import { SluiceError } from '../core/errors.ts'

/** Makes one value of another. NULL and missing values pass as they are. @throws SLUICE_VALUE */
export type ValueRule = (value: Value) => Value

/**
 * `/regex/text/flags` with any delimiter: replaces every match, by JavaScript's syntax (`$1`, `$<name>`). A delimiter inside is
 * written with a backslash before it.
 *
 * @throws SLUICE_USAGE
 */
export function compileReplacements(text: string): ValueRule {
  const delimiter = text[0]
  const parts = delimiter === undefined ? [] : splitUnescaped(text.slice(1), delimiter)
  const [pattern, replacement, flags] = parts
  if (parts.length !== 3 || pattern === undefined || replacement === undefined || flags === undefined)
    throw new SluiceError('SLUICE_USAGE', `"${text}" is not of the form /regex/text/`, {
      hint: "as in --replace 'postcode=/ //'",
    })
  const regex = compileRegex(pattern, flags)
  return (value) => (typeof value === 'string' ? value.replace(regex, replacement) : value)
}

function compileRegex(pattern: string, flags: string): RegExp {
  try {
    return new RegExp(pattern, flags.includes('g') ? flags : `${flags}g`)
  } catch (error) {
    throw new SluiceError('SLUICE_USAGE', error instanceof Error ? error.message : String(error), { cause: error })
  }
}

function splitUnescaped(text: string, delimiter: string): string[] {
  const parts = ['']
  for (let i = 0; i < text.length; i += 1) {
    const char = text[i] ?? ''
    const next = text[i + 1]
    if (char === '\\' && next !== undefined) {
      parts[parts.length - 1] += next === delimiter ? next : char + next
      i += 1
    } else if (char === delimiter) parts.push('')
    else parts[parts.length - 1] += char
  }
  return parts
}

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/
const HEX = /^(?:[0-9a-fA-F]{2})*$/

/** Text to bytes, strictly. @throws SLUICE_VALUE */
export function decodeBinary(encoding: 'base64' | 'hex'): ValueRule {
  const valid = encoding === 'hex' ? HEX : BASE64
  return (value) => {
    if (typeof value !== 'string') return value
    if (!valid.test(value)) throw new SluiceError('SLUICE_VALUE', `a value that is not ${encoding}`)
    return Buffer.from(value, encoding)
  }
}
