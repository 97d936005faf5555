import type { TableColumn } from '../table/table.ts'
import { intervalCheck } from './value-checks-interval.ts'
import { arrayElements, compositeFields, eachPart, rangeBounds } from './value-checks-nested.ts'
import {
  blankCheck,
  charCheck,
  moneyCheck,
  nameCheck,
  numericCheck,
  PLAIN_NUMERIC_DECIMALS,
  wrapCheck,
  type TextCheck,
} from './value-checks-text.ts'
import { timeObjection, type TimeType } from './value-checks-time.ts'
import { KIND } from './value-fast.ts'

/** How the values of one column are checked. */
export interface ColumnCheck {
  /** One of KIND: which fast look there is. */
  readonly kind: number
  /** The fast look's bound: digits after the point, or bytes. */
  readonly bound: number
  readonly text: TextCheck
}

/** The zone of times without an offset. */
export interface ZoneOfTimes {
  readonly name: string
  /** Whether a time is one that its clocks never show; null where there is none. */
  readonly inGap: ((text: string) => boolean) | null
}

/** A type with its modifier: a column's base, an array's element, an attribute. */
interface TypeUse {
  readonly typeOid: number
  readonly typmod: number
  readonly type: string
}

/** Digits of a second's fraction where the type names none (MAX_TIMESTAMP_PRECISION). */
const FULL_PRECISION = 6
/** Four bytes that the modifiers of varchar, char and numeric count too (VARHDRSZ). */
const VARHDRSZ = 4

const TIME_TYPES: ReadonlyMap<number, TimeType> = new Map([
  [1082, 'date'],
  [1083, 'time'],
  [1266, 'timetz'],
  [1114, 'timestamp'],
  [1184, 'timestamptz'],
])

/** Built-in ranges and multiranges whose bounds may be altered: their OID, the bound's OID. */
const RANGES: ReadonlyMap<number, number> = new Map([
  [3906, 1700], [3908, 1114], [3910, 1184], [3912, 1082],
  [4532, 1700], [4533, 1114], [4534, 1184], [4535, 1082],
]) // prettier-ignore

/** The check that a column's values need; null where its type stores exactly what it takes (OIDs: pg_type.dat). */
export function checkOf(column: TableColumn, zone: ZoneOfTimes): ColumnCheck | null {
  if (column.element !== null) {
    const inner = scalarCheck(column.element, zone)
    return inner === null ? null : { kind: KIND.text, bound: 0, text: eachPart(arrayElements, inner.text) }
  }
  if (column.attributes !== null) return compositeCheck(column.attributes, zone)
  return scalarCheck({ typeOid: column.baseTypeOid, typmod: column.baseTypmod, type: column.baseType }, zone)
}

function compositeCheck(attributes: NonNullable<TableColumn['attributes']>, zone: ZoneOfTimes): ColumnCheck | null {
  const checks = attributes.map((attribute) => checkOf(attribute, zone))
  if (checks.every((check) => check === null)) return null
  return {
    kind: KIND.text,
    bound: 0,
    text: (text) => {
      for (const [index, field] of (compositeFields(text) ?? []).entries()) {
        const reason = field === null ? null : (checks[index]?.text(field) ?? null)
        if (reason !== null) return `has a field (${attributes[index]?.name ?? index + 1}) that ${reason}`
      }
      return null
    },
  }
}

function timestamptzCheck(precision: number, { name, inGap }: ZoneOfTimes): ColumnCheck {
  const plain: TextCheck = (text) => timeObjection(text, 'timestamptz', precision)
  if (inGap === null) return { kind: KIND.timestamptz, bound: precision, text: plain }
  // The fast look knows no zones.
  return textOnly(
    (text) =>
      plain(text) ??
      (inGap(text) ? `is no time of ${name}, whose clocks go forward over it, and would be moved` : null),
  )
}

function scalarCheck({ typeOid, typmod, type }: TypeUse, zone: ZoneOfTimes): ColumnCheck | null {
  const range = RANGES.get(typeOid)
  if (range !== undefined) {
    const bound = scalarCheck({ typeOid: range, typmod: -1, type }, zone)
    return bound === null ? null : textOnly(eachPart(rangeBounds, bound.text))
  }
  const time = TIME_TYPES.get(typeOid)
  if (time !== undefined) {
    const precision = typmod < 0 ? FULL_PRECISION : Math.min(typmod, FULL_PRECISION)
    if (time === 'timestamptz') return timestamptzCheck(precision, zone)
    return { kind: KIND[time], bound: precision, text: (text) => timeObjection(text, time, precision) }
  }
  switch (typeOid) {
    case 1700: {
      // The low 11 bits are the scale, signed since PostgreSQL 15 (numeric.c, numeric_typmod_scale).
      const scale = typmod < 0 ? PLAIN_NUMERIC_DECIMALS : (((typmod - VARHDRSZ) & 0x7ff) ^ 1024) - 1024
      return { kind: scale < 0 ? KIND.text : KIND.numeric, bound: scale, text: numericCheck(scale, type) }
    }
    case 1042:
    case 1043:
      if (typmod < VARHDRSZ) return null
      return { kind: KIND.blanks, bound: typmod - VARHDRSZ, text: blankCheck(typmod - VARHDRSZ, type) }
    case 1186:
      return textOnly(intervalCheck(typmod, type))
    case 18:
      return textOnly(charCheck)
    case 19:
      return textOnly(nameCheck)
    case 790:
      return textOnly(moneyCheck)
    case 26:
    case 28:
    case 29:
      return textOnly(wrapCheck(32, type))
    case 5069:
      return textOnly(wrapCheck(64, type))
    default:
      return null
  }
}

function textOnly(text: TextCheck): ColumnCheck {
  return { kind: KIND.text, bound: 0, text }
}
