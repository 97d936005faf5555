import { SluiceError } from '../core/errors.ts'
import { parseDecimalType } from '../core/schema.ts'
import { nearest } from '../core/nearest.ts'
import { parseDuration, parseSize } from './units.ts'

/** What a flag's value may hold once parsed; it survives JSON. */
export type FlagResult = string | number | boolean | readonly string[]

/** How the text of a flag, a SLUICE_ variable or a config file's value becomes a value. */
export interface FlagValue {
  /** `flag` is the name without dashes, for messages. @throws SLUICE_USAGE, SLUICE_NOT_YET */
  parse(text: string, flag: string): FlagResult
  /** Words that are offered: help, completion, "did you mean". */
  readonly choices?: readonly string[]
  /** Values of several uses are joined to one list. */
  readonly repeatable?: boolean
}

const usage = (message: string, hint: string): SluiceError => new SluiceError('SLUICE_USAGE', message, { hint })

/** Any text. */
export const text: FlagValue = { parse: (value) => value }

/** Any text, more than once. */
export const texts: FlagValue = { parse: (value) => [value], repeatable: true }

/** A size of so many bytes at least; `least` as people write it. */
export function sizeFrom(least: string): FlagValue {
  return {
    parse(value, flag) {
      const bytes = parseSize(value, flag)
      if (bytes >= parseSize(least, flag)) return bytes
      throw usage(`--${flag} ${value}: too little to work with`, `${least} at least`)
    },
  }
}

/** Durations in milliseconds. */
export const duration: FlagValue = { parse: parseDuration }

/**
 * A switch: on the command line a flag without a value. The text is what config and environment hold, and says what is true
 * of the key: `"glob": false` is `--no-glob`.
 */
export const toggle: FlagValue = {
  parse(value, flag) {
    if (/^(true|1|yes|on)$/i.test(value)) return true
    if (/^(false|0|no|off)$/i.test(value)) return false
    throw usage(`--${flag} ${value}: not a switch`, 'true or false')
  },
}

/** One of some words; those of `notYet` are specified and not built. */
export function choice(words: readonly string[], notYet: readonly string[] = []): FlagValue {
  return {
    choices: words.filter((word) => !notYet.includes(word)),
    parse(value, flag) {
      if (notYet.includes(value)) throw new SluiceError('SLUICE_NOT_YET', `--${flag} ${value} is not built yet`)
      if (words.includes(value)) return value
      const meant = nearest(value, words)
      throw usage(
        `--${flag} ${value}: unknown value${meant === null ? '' : `; did you mean ${meant}?`}`,
        `one of ${words.filter((word) => !notYet.includes(word)).join(', ')}`,
      )
    },
  }
}

/** A whole number from `min` on, up to `most` where that is said; `auto` too where allowed. */
export function whole(min: number, o: { readonly auto: boolean; readonly most?: number }): FlagValue {
  const { most = Number.MAX_SAFE_INTEGER } = o
  return {
    ...(o.auto ? { choices: ['auto'] } : {}),
    parse(value, flag) {
      if (o.auto && value === 'auto') return value
      if (/^\d{1,15}$/.test(value) && Number(value) >= min && Number(value) <= most) return Number(value)
      throw usage(
        `--${flag} ${value}: not a number that fits`,
        `a whole number from ${min} ${o.most === undefined ? 'on' : `to ${most}`}${o.auto ? ', or auto' : ''}`,
      )
    },
  }
}

/** Parts in flight: no more than an upload has (S3's own limit). */
export const partsAtOnce = whole(0, { auto: true, most: 10_000 })
/** Requests or connections at once: more sockets than `ulimit -n` usually allows. */
export const atOnce = whole(1, { auto: true, most: 10_000 })
/** Threads, which take some MiB each. */
export const threads = whole(0, { auto: true, most: 256 })

/** Names between commas; a name with a comma goes in double quotes, as in CSV. */
export const names: FlagValue = {
  repeatable: true,
  parse(value, flag) {
    const found = splitNames(value)
    if (found.some((name) => name === ''))
      throw usage(`--${flag} ${value}: an empty name`, 'names between commas: a,b,c')
    return found
  },
}

/** `left=right`, repeatable; `a=b,c=d` too: a piece without `=` belongs to the one before it (`price=numeric(10,2)`). */
export function pairs(o: { readonly split: boolean; readonly form: string }): FlagValue {
  return {
    repeatable: true,
    parse(value, flag) {
      const found: string[] = []
      for (const piece of o.split ? value.split(',') : [value]) {
        const last = found.at(-1)
        if (piece.includes('=') || last === undefined) found.push(piece)
        else found[found.length - 1] = `${last},${piece}`
      }
      for (const pair of found) {
        if (pair.indexOf('=') < 1)
          throw usage(`--${flag} ${pair}: not of the form ${o.form}`, `e.g. --${flag} ${o.form}`)
      }
      return found
    },
  }
}

/** One byte; `\t` and `tab` are a tab. With `none`, that word too. */
export function oneByte(o: { readonly none: boolean }): FlagValue {
  return {
    parse(value, flag) {
      if (o.none && value === 'none') return value
      const character = value === String.raw`\t` || value === 'tab' ? '\t' : value
      if (Buffer.byteLength(character) === 1 && !/[\r\n\0]/.test(character)) return character
      throw usage(
        `--${flag} ${JSON.stringify(value)}: not one byte`,
        String.raw`one ASCII character, \t for a tab${o.none ? ', or none' : ''}`,
      )
    },
  }
}

/** An encoding by its WHATWG name (https://encoding.spec.whatwg.org/#names-and-labels). */
export const encoding: FlagValue = {
  parse(value, flag) {
    try {
      return new TextDecoder(value).encoding
    } catch {
      throw usage(
        `--${flag} ${value}: unknown encoding`,
        'a WHATWG name, e.g. utf-8, windows-1252, utf-16le, shift_jis',
      )
    }
  },
}

/** `decimal(p,s)`, precision 1 to 38. */
export const decimalType: FlagValue = {
  parse(value, flag) {
    const decimal = parseDecimalType(value)
    if (decimal !== null) return `decimal(${decimal.precision},${decimal.scale})`
    throw usage(`--${flag} ${value}: not a decimal type that fits`, 'decimal(p,s), p from 1 to 38, s from 0 to p')
  },
}

/** An http or https URL; without a password, which the state folder would keep. */
export const httpUrl: FlagValue = {
  parse(value, flag) {
    if (!/^https?:\/\/[^/]/i.test(value) || !URL.canParse(value))
      throw usage(`--${flag}: not an address`, 'e.g. http://127.0.0.1:9000')
    const { username, password } = new URL(value)
    if (username === '' && password === '') return value
    throw usage(`--${flag}: an address with a user or a password`, 'keys come from the environment or a profile')
  },
}

/** The name and type of a key's attribute in DynamoDB: `NAME:S`, `:N`, `:B`; S where no type is said. */
export const keyAttribute: FlagValue = {
  parse(value, flag) {
    const [, name, type = 'S'] = /^(.*?)(?::([^:]*))?$/s.exec(value) ?? []
    if (name !== undefined && name !== '' && ['S', 'N', 'B'].includes(type)) return `${name}:${type}`
    throw usage(`--${flag} ${value}: not a key`, `a name and S, N or B: --${flag} id:S`)
  },
}

/** `column=/regex/text/flags`; the pattern itself is judged by the mapping, before any row is read. */
export const replacement: FlagValue = {
  repeatable: true,
  parse(value, flag) {
    const match = /^([^=]+)=([\s\S])([\s\S]*)$/.exec(value)
    const delimiters = match === null ? 0 : (match[3] ?? '').split(match[2] ?? '/').length - 1
    if (delimiters < 2)
      throw usage(`--${flag} ${value}: not of the form column=/regex/text/`, `e.g. --${flag} 'postcode=/ //'`)
    return [value]
  },
}

function splitNames(value: string): string[] {
  const found: string[] = []
  const pattern = /"((?:[^"]|"")*)"(?=,|$)|([^,]*)/y
  for (let at = 0; at <= value.length; at = pattern.lastIndex + 1) {
    pattern.lastIndex = at
    const match = pattern.exec(value)
    if (match === null) break
    found.push(match[1] === undefined ? (match[2] ?? '') : match[1].replaceAll('""', '"'))
  }
  return found
}
