import { SluiceError } from './errors.ts'
import { nearest } from './nearest.ts'
import { MODES } from './options.ts'
import type { CopyOptions } from './options.ts'
import { COMPRESSIONS, FORMATS } from './ports.ts'
import { parseDecimalType } from './schema.ts'

/** What is wrong with a value: what would fit, for people; null where it fits. */
type Rule = (value: unknown) => string | null

const MIB = 1024 * 1024

const text: Rule = (value) => (typeof value === 'string' ? null : 'a string')
const toggle: Rule = (value) => (typeof value === 'boolean' ? null : 'true or false')
const texts: Rule = (value) => (isTexts(value) ? null : 'an array of strings')
const pairs: Rule = (value) =>
  isTexts(value) && value.every((pair) => pair.indexOf('=') > 0) ? null : 'an array of strings, each left=right'
const oneOf =
  (words: readonly string[]): Rule =>
  (value) =>
    typeof value === 'string' && words.includes(value) ? null : `one of ${words.join(', ')}`

/** A whole number from `least` to `most`. */
function whole(least: number, most = Number.MAX_SAFE_INTEGER): Rule {
  const upTo = most === Number.MAX_SAFE_INTEGER ? 'on' : `to ${most}`
  return (value) =>
    typeof value === 'number' && Number.isSafeInteger(value) && value >= least && value <= most
      ? null
      : `a whole number from ${least} ${upTo}`
}

function orAuto(rule: Rule): Rule {
  return (value) => {
    const wrong = value === 'auto' ? null : rule(value)
    return wrong === null ? null : `${wrong}, or auto`
  }
}

function oneByte(words: readonly string[]): Rule {
  return (value) => {
    const isByte = typeof value === 'string' && value.length === 1 && value < '\u0080' && !'\r\n\0'.includes(value)
    const fits = isByte || (typeof value === 'string' && words.includes(value))
    return fits ? null : ['one ASCII character', ...words].join(', or ')
  }
}

const encoding: Rule = (value) => {
  try {
    return typeof value === 'string' && new TextDecoder(value).encoding !== '' ? null : 'the WHATWG name of an encoding'
  } catch {
    return 'the WHATWG name of an encoding'
  }
}

const decimal: Rule = (value) =>
  typeof value === 'string' && parseDecimalType(value) !== null ? null : 'decimal(p,s), p from 1 to 38, s from 0 to p'

/** Kept in the state folder as it is: a secret has no place in it. */
const address: Rule = (value) => {
  const url =
    typeof value === 'string' && /^https?:\/\/[^/]/i.test(value) && URL.canParse(value) ? new URL(value) : null
  if (url === null) return 'an address: http://127.0.0.1:9000'
  return url.username === '' && url.password === ''
    ? null
    : 'an address without user and password: keys come from the environment or a profile'
}

/** What each option may be; the command line's flags are held to the same by a test. */
export const OPTION_RULES: Readonly<Record<keyof CopyOptions, Rule>> = {
  sourceFormat: oneOf(FORMATS),
  sinkFormat: oneOf(FORMATS),
  sourceCompression: oneOf(COMPRESSIONS),
  sinkCompression: oneOf(COMPRESSIONS),
  entry: text,
  delimiter: oneByte([]),
  quote: oneByte(['none']),
  escape: oneByte([]),
  header: toggle,
  columns: texts,
  skipLines: whole(0),
  null: texts,
  empty: oneOf(['null', 'string', 'omit']),
  ragged: oneOf(['reject', 'fill', 'trim']),
  encoding,
  onInvalidUtf8: oneOf(['error', 'reject', 'replace']),
  onNul: oneOf(['error', 'reject', 'strip']),
  lineEnd: oneOf(['auto', 'lf', 'crlf']),
  byPosition: toggle,
  select: texts,
  rename: pairs,
  type: pairs,
  set: pairs,
  skipIfEmpty: texts,
  replace: pairs,
  mode: oneOf(MODES),
  create: toggle,
  ifExists: oneOf(['fail', 'overwrite', 'skip']),
  yes: toggle,
  commit: oneOf(['job', 'partition']),
  ledgerSchema: text,
  timeZone: text,
  beforeSql: texts,
  afterSql: texts,
  query: text,
  numeric: decimal,
  onSpecial: oneOf(['error', 'null', 'text']),
  rowGroupRows: whole(1),
  rowGroupBytes: whole(1),
  parquetCodec: oneOf(['snappy', 'zstd', 'gzip', 'lz4', 'brotli', 'none']),
  maxFileSize: whole(1),
  manifest: text,
  singleFile: toggle,
  createTable: toggle,
  partitionKey: text,
  sortKey: text,
  warmWrites: whole(1),
  writeUnits: orAuto(whole(1)),
  readUnits: orAuto(whole(1)),
  types: oneOf(['infer', 'string']),
  dedupe: oneOf(['last', 'error', 'none']),
  s3Endpoint: address,
  region: text,
  profile: text,
  signRequest: toggle,
  pathStyle: oneOf(['auto', 'always', 'never']),
  partSize: whole(1),
  // No more parts in flight than an upload has (S3's own limit).
  parallelism: orAuto(whole(0, 10_000)),
  // More sockets than `ulimit -n` usually allows.
  concurrency: orAuto(whole(1, 10_000)),
  // Threads take some MiB each.
  workers: orAuto(whole(0, 256)),
  maxMemory: whole(MIB),
  retryFor: whole(0),
  glob: toggle,
}

/**
 * That each option is one we know, and has a value that can be meant.
 *
 * @throws SLUICE_USAGE, with the nearest name for an unknown one
 */
export function requireSound(options: CopyOptions): void {
  for (const [key, value] of Object.entries(options)) {
    if (value === undefined) continue
    const rule = Object.hasOwn(OPTION_RULES, key) ? OPTION_RULES[key as keyof CopyOptions] : undefined
    if (rule === undefined) {
      const meant = nearest(key, Object.keys(OPTION_RULES))
      throw new SluiceError(
        'SLUICE_USAGE',
        `unknown option ${key}${meant === null ? '' : `; did you mean ${meant}?`}`,
        {
          hint: 'options are the names of the flags in camelCase',
        },
      )
    }
    const wanted = rule(value)
    if (wanted !== null)
      throw new SluiceError('SLUICE_USAGE', `option ${key}${shown(value)}: not a value that fits`, { hint: wanted })
  }
}

/** Numbers and switches; what is text may hold a secret, and what is an object says nothing. */
function shown(value: unknown): string {
  return typeof value === 'number' || typeof value === 'boolean' || value === null ? ` ${value}` : ''
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string')
}
