import { TYPE } from './raw-thrift.ts'
import type { ThriftStruct } from './raw-thrift.ts'

/** Fields of parquet.thrift: FileMetaData; SchemaElement. */
const FILE = { schema: 2 }
const ELEMENT = { type: 1, length: 2, repetition: 3, children: 5, converted: 6, logical: 10 }
const REQUIRED = 0
/** Physical types, and the older name of intervals (ConvertedType). */
const INT96 = 3
const FIXED_LENGTH = 7
const INTERVAL = 21
/** Of an INT96, and of an interval: three numbers of 32 bits (LogicalTypes.md, "INTERVAL"). */
const TWELVE_BYTES = 12

/**
 * Makes a footer's schema one that the decoder takes, where other writers left out what readers go without: a column whose repetition is not said is
 * required (hyparquet-writer), and a group of no fields, which has no values either, is passed over (parquet-go's `struct{}`).
 */
export function mendSchema(footer: ThriftStruct): void {
  const elements = footer.structs(FILE.schema)
  const [root, ...others] = elements
  for (const element of others)
    if (element.get(ELEMENT.repetition) === undefined) element.set(ELEMENT.repetition, TYPE.i32, REQUIRED)
  if (root === undefined || !others.some(isEmptyGroup)) return
  const kept: ThriftStruct[] = []
  let at = 0
  /** Whether the element that begins there has any column below it; elements lie depth first. */
  const take = (): boolean => {
    const element = elements[at]
    at += 1
    if (element === undefined) return false
    const place = kept.push(element)
    const children = element.integer(ELEMENT.children) ?? 0
    let full = 0
    // A count that is not true ends with the list.
    for (let i = 0; i < children && at < elements.length; i += 1) if (take()) full += 1
    if (full < children) element.set(ELEMENT.children, TYPE.i32, full)
    const isFull = full > 0 || !isGroup(element)
    if (!isFull && element !== root) kept.length = place - 1
    return isFull
  }
  take()
  footer.set(FILE.schema, TYPE.list, { of: TYPE.struct, items: [...kept, ...elements.slice(at)] })
}

function isGroup(element: ThriftStruct): boolean {
  return element.get(ELEMENT.type) === undefined
}

function isEmptyGroup(element: ThriftStruct): boolean {
  return isGroup(element) && (element.integer(ELEMENT.children) ?? 0) === 0
}

/**
 * Says of values that the decoder would lose something of that they are just twelve bytes: of INT96 timestamps (old Spark files), which it makes
 * nanoseconds of, years before 1677 and after 2262; of intervals the months.
 */
export function takeAsBytes(footer: ThriftStruct): void {
  for (const element of footer.structs(FILE.schema)) {
    const isInterval =
      element.integer(ELEMENT.converted) === INTERVAL && element.integer(ELEMENT.length) === TWELVE_BYTES
    if (element.integer(ELEMENT.type) !== INT96 && !isInterval) continue
    element.set(ELEMENT.type, TYPE.i32, FIXED_LENGTH).set(ELEMENT.length, TYPE.i32, TWELVE_BYTES)
    element.delete(ELEMENT.converted).delete(ELEMENT.logical)
  }
}
