import type { TableColumn } from './table.ts'

type Objects = (text: string, column: TableColumn) => boolean

const INTEGER_RANGES: ReadonlyMap<number, readonly [bigint, bigint]> = new Map([
  [21, [-32_768n, 32_767n]],
  [23, [-2_147_483_648n, 2_147_483_647n]],
  [20, [-9_223_372_036_854_775_808n, 9_223_372_036_854_775_807n]],
])

/** By the OID of the base type (pg_type.dat): whether every version refuses the text. Where versions differ, or it is hard to say, it does not. */
const BY_TYPE: ReadonlyMap<number, Objects> = new Map<number, Objects>([
  [16, (text) => !isBoolean(trimmed(text))],
  [20, isNoInteger],
  [21, isNoInteger],
  [23, isNoInteger],
  [700, isNoFloat],
  [701, isNoFloat],
  [1700, isNoNumeric],
  [1082, isNoTime],
  [1083, isNoTime],
  [1114, isNoTime],
  [1184, isNoTime],
  [1266, isNoTime],
  [2950, (text) => !/^\{?[0-9a-f]{32}\}?$/.test(text.toLowerCase().replaceAll('-', ''))],
  [1042, isTooLong],
  [1043, isTooLong],
  [1560, (text, column) => /^[01]*$/.test(text) && column.baseTypmod >= 0 && text.length !== column.baseTypmod],
  [1562, (text, column) => /^[01]*$/.test(text) && column.baseTypmod >= 0 && text.length > column.baseTypmod],
  [114, (text) => !isJson(text)],
  [3802, (text) => !isJson(text)],
])

/** Why the text can't be a value of the column, said for people; null where it may be one. */
export function sureObjection(column: TableColumn, text: string): string | null {
  const objects = BY_TYPE.get(column.baseTypeOid)
  if (objects === undefined || !objects(text, column)) return null
  return column.baseTypeOid === 1042 || column.baseTypeOid === 1043 ? `is too long for ${column.baseType}` : `is no ${column.baseType}`
}

/** What C's isspace takes for a blank. */
function trimmed(text: string): string {
  return text.replace(/^[ \t-\r]+|[ \t-\r]+$/g, '')
}

/** Any prefix that means one word only (bool.c, parse_bool_with_len). */
function isBoolean(text: string): boolean {
  return /^(t(r(u(e)?)?)?|f(a(l(s(e)?)?)?)?|y(e(s)?)?|n(o)?|on|of(f)?|1|0)$/i.test(text)
}

function isNoInteger(text: string, column: TableColumn): boolean {
  const range = INTEGER_RANGES.get(column.baseTypeOid)
  const plain = trimmed(text)
  // PostgreSQL 16 and later read 0x1F, 0o17, 0b11 and 1_000.
  if (!/^[+-]?\d+$/.test(plain)) return !/^[+-]?(0[xob][0-9a-f_]+|\d[\d_]*)$/i.test(plain)
  if (range === undefined || plain.length <= 4) return false
  const value = BigInt(plain.startsWith('+') ? plain.slice(1) : plain)
  return value < range[0] || value > range[1]
}

function isNoFloat(text: string): boolean {
  return !/^[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|0x[0-9a-f.p+-]+|inf|infinity|nan(\(.*\))?)$/i.test(trimmed(text))
}

function isNoNumeric(text: string, column: TableColumn): boolean {
  const plain = trimmed(text)
  const match = /^[+-]?(\d*)\.?(\d*)(e[+-]?\d+)?$/i.exec(plain)
  const digits = (match?.[1] ?? '') + (match?.[2] ?? '')
  if (match === null || digits === '') return !/^[+-]?(0[xob][0-9a-f_]+|[\d_]*\.?[\d_]*(e[+-]?[\d_]+)?|inf|infinity|nan)$/i.test(plain) || plain === ''
  if (column.baseTypmod < 0 || match[3] !== undefined) return false
  const precision = ((column.baseTypmod - 4) >> 16) & 0xffff
  const scale = (((column.baseTypmod - 4) & 0x7ff) ^ 1024) - 1024
  return (match[1] ?? '').replace(/^0+/, '').length > precision - scale
}

/** No digit and no word that stands for a time; or a calendar day that is none. */
function isNoTime(text: string, column: TableColumn): boolean {
  if (!/\d/.test(text)) return !/(now|today|tomorrow|yesterday|epoch|inf|allballs)/i.test(text)
  if (column.baseTypeOid === 1083 || column.baseTypeOid === 1266) return false
  const match = /^\s*(\d{4})-(\d\d)-(\d\d)(?:[ T]|\s*$)/.exec(text)
  if (match === null) return false
  const [year, month, day] = [Number(match[1]), Number(match[2]), Number(match[3])]
  if (month < 1 || month > 12 || day < 1 || day > 31) return true
  return !/BC/i.test(text) && year > 0 && day > new Date(Date.UTC(2000 + (year % 400), month, 0)).getUTCDate()
}

function isTooLong(text: string, column: TableColumn): boolean {
  const limit = column.baseTypmod - 4
  if (limit < 1 || text.length <= limit) return false
  const characters = [...text.replace(/ +$/, '')].length
  return characters > limit
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
