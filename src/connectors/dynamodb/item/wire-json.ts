import { SluiceError } from '../../../core/errors.ts'
import { PLAIN, type RecordCursor } from '../../../formats/csv/record-cursor.ts'
import { textToWire } from './attribute-text.ts'
import { checkNumber } from './number.ts'
import type { PutBatch } from '../put/put-batch.ts'
import { lackingKey, type Attribute } from './type-map.ts'
import { badIndexKey, checkIndexKey, joinKeys, keyText, missingKey } from './validate.ts'
import type { Emptiness } from './wire-rows.ts'

/** `{"PutRequest":{"Item":{`, after a separator, and what ends it. */
export const PUT_BEGIN = Buffer.from('{"PutRequest":{"Item":{')
export const PUT_END = Buffer.from('}}}')

/** Bytes that `writePut` takes at most: a UTF-16 unit has three of UTF-8 at most. */
export function mostPutBytes(attributes: string): number {
  return attributes.length * 3 + PUT_BEGIN.byteLength + PUT_END.byteLength
}

/** Writes attributes, as they go over the wire without braces, as a put. @returns where it ends */
export function writePut(attributes: string, bytes: Buffer, at: number): number {
  return at + bytes.write(`{"PutRequest":{"Item":{${attributes}}}}`, at)
}

const QUOTE = 34
const BACKSLASH = 92
const MINUS = 45
const POINT = 46
/** Digits that a number may have to be taken without a closer look: 38 are the most that DynamoDB holds. */
const FAST_DIGITS = 38

/** How a column's bytes are written. */
const TEXT = 0
const NUMBER = 1
/** By its text. */
const OTHER = 2

interface Slot {
  readonly attribute: Attribute
  readonly way: number
  /** `"name":{"S":"` */
  readonly begin: Uint8Array
  /** What an empty field becomes: nothing, or `"name":{"NULL":true},`. */
  readonly empty: Uint8Array
  /** The index whose key it would be as NULL, which cannot be; null elsewhere. */
  readonly noNull: string | null
}

/**
 * Writes CSV records as items straight from their bytes, without a string a value: the hot path of a load. Text is copied and only escaped where
 * JSON wants it; numbers are copied where they are plain digits.
 */
export class CsvItemEncoder {
  /** Of the record that was written last. */
  key = ''
  readonly #slots: readonly Slot[]
  readonly #frameBytes: number
  readonly #missing: 'partition' | 'sort' | null
  /** Of the record in hand, for columns that are written by their text; one a column. */
  readonly #texts: (Buffer | null)[]
  readonly #others: readonly number[]
  #partition = ''

  constructor(attributes: readonly Attribute[], o: Emptiness & { readonly sorted: boolean }) {
    this.#slots = attributes.map((attribute) => slotOf(attribute, o.nulls))
    this.#texts = attributes.map(() => null)
    this.#others = this.#slots.flatMap((slot, i) => (slot.way === OTHER ? [i] : []))
    this.#missing = lackingKey(attributes, o.sorted)
    this.#frameBytes = this.#slots.reduce(
      (sum, slot) => sum + Math.max(slot.begin.byteLength + 3, slot.empty.byteLength),
      PUT_BEGIN.byteLength + PUT_END.byteLength + 1,
    )
  }

  /**
   * Writes the cursor's record as a put into the batch, behind its `at`, which stays. `key` is then the item's. @returns where it ends
   *
   * @throws SLUICE_VALUE with the column; SLUICE_CSV_FIELD_COUNT
   */
  encode(cursor: RecordCursor, batch: PutBatch): number {
    const slots = this.#slots
    if (cursor.count !== slots.length) throw this.#fieldCount(cursor.count)
    if (this.#missing !== null) throw missingKey(this.#missing)
    // A byte becomes six at most: \u001f.
    batch.reserve(this.#frameBytes + (cursor.end - cursor.start) * 6 + this.#readOthers(cursor))
    const out = batch.bytes
    let at = batch.at
    out[at] = batch.separator
    at = copy(PUT_BEGIN, out, at + 1)
    let sort: string | null = null
    for (let j = 0; j < slots.length; j += 1) {
      const slot = slots[j] as Slot
      const { key } = slot.attribute
      if (key !== null) {
        const own = this.#keyOf(cursor, j, slot.attribute)
        if (key === 'partition') this.#partition = own
        else sort = own
      }
      at = this.#field(cursor, j, { out, at, slot })
    }
    // The comma behind the last attribute.
    at = copy(PUT_END, out, at - 1)
    this.key = sort === null ? this.#partition : joinKeys(this.#partition, sort)
    return at
  }

  #field(cursor: RecordCursor, j: number, to: { out: Uint8Array; at: number; slot: Slot }): number {
    const { out, slot } = to
    const start = cursor.starts[j] as number
    const end = cursor.ends[j] as number
    const kind = cursor.kinds[j] as number
    if (start === end && kind === PLAIN) return empty(slot, out, to.at)
    if (slot.way === OTHER) return copy(this.#texts[j] ?? slot.empty, out, to.at)
    const at = copy(slot.begin, out, to.at)
    if (kind === PLAIN) return this.#value(cursor.bytes, { start, end, out, at, slot })
    const content = cursor.content(j)
    return this.#value(content, { start: 0, end: content.byteLength, out, at, slot })
  }

  #value(bytes: Uint8Array, o: { start: number; end: number; out: Uint8Array; at: number; slot: Slot }): number {
    const { start, end, out, slot } = o
    let { at } = o
    if (slot.way === NUMBER) {
      const from = isPlainNumber(bytes, start, end)
        ? start
        : start + this.#checkNumber(bytes.subarray(start, end), slot)
      for (let i = from; i < end; i += 1) out[at++] = bytes[i] as number
    } else {
      for (let i = start; i < end; i += 1) {
        const byte = bytes[i] as number
        if (byte < 32 || byte === QUOTE || byte === BACKSLASH) at = escape(byte, out, at)
        else out[at++] = byte
      }
    }
    out[at] = QUOTE
    out[at + 1] = 125
    out[at + 2] = 44
    return at + 3
  }

  /** @returns how many bytes before the number are not sent */
  #checkNumber(bytes: Uint8Array, { attribute }: Slot): number {
    try {
      const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
      return text.length - checkNumber(text).length
    } catch (error) {
      throw error instanceof SluiceError ? error.at({ column: attribute.name }) : error
    }
  }

  #keyOf(cursor: RecordCursor, j: number, { key, kind, name }: Attribute): string {
    const start = cursor.starts[j] as number
    const end = cursor.ends[j] as number
    const role = key ?? 'partition'
    try {
      if (cursor.kinds[j] === PLAIN && start === end) throw missingKey(role)
      const text = cursor.text(j)
      // What most keys are: a short text.
      if (kind === 'S' && text !== '' && end - start <= 1024) return text
      return keyText(text, { type: kind === 'N' || kind === 'B' ? kind : 'S', key: role })
    } catch (error) {
      throw error instanceof SluiceError ? error.at({ column: name }) : error
    }
  }

  /** Reads the columns that are written by their text. @returns their bytes on the wire */
  #readOthers(cursor: RecordCursor): number {
    let bytes = 0
    for (const j of this.#others) {
      if (cursor.starts[j] === cursor.ends[j] && cursor.kinds[j] === PLAIN) continue
      const { attribute } = this.#slots[j] as Slot
      try {
        const value = cursor.text(j)
        const wire = textToWire(value, attribute.kind)
        if (attribute.index !== undefined) checkIndexKey(value, attribute.index)
        const text = Buffer.from(`${JSON.stringify(attribute.name)}:${wire},`)
        this.#texts[j] = text
        bytes += text.byteLength
      } catch (error) {
        throw error instanceof SluiceError ? error.at({ column: attribute.name }) : error
      }
    }
    return bytes
  }

  #fieldCount(count: number): SluiceError {
    return new SluiceError('SLUICE_CSV_FIELD_COUNT', `${count} fields where ${this.#slots.length} are wanted`)
  }
}

function slotOf(attribute: Attribute, nulls: 'omit' | 'NULL'): Slot {
  const { kind, name, index } = attribute
  const text = JSON.stringify(name)
  const isText = (kind === 'S' || kind === 'any') && index === undefined
  const way = isText ? TEXT : kind === 'N' ? NUMBER : OTHER
  return {
    attribute,
    way,
    begin: Buffer.from(`${text}:{"${kind === 'any' ? 'S' : kind}":"`),
    empty: Buffer.from(nulls === 'omit' ? '' : `${text}:{"NULL":true},`),
    noNull: nulls === 'omit' || index === undefined ? null : index.index,
  }
}

/** What an empty field becomes. @throws SLUICE_VALUE where that cannot be */
function empty({ empty: bytes, noNull, attribute }: Slot, out: Uint8Array, at: number): number {
  if (noNull !== null)
    throw badIndexKey(`would be NULL, and a key of the index ${noNull} cannot be`).at({ column: attribute.name })
  return copy(bytes, out, at)
}

/** Digits, a minus before them, a point among them. */
function isPlainNumber(bytes: Uint8Array, start: number, end: number): boolean {
  let i = bytes[start] === MINUS ? start + 1 : start
  if (end - i > FAST_DIGITS) return false
  let digits = 0
  let points = 0
  for (; i < end; i += 1) {
    const byte = bytes[i] as number
    if (byte >= 48 && byte <= 57) digits += 1
    else if (byte === POINT) points += 1
    else return false
  }
  return digits > 0 && points < 2
}

function copy(from: Uint8Array, to: Uint8Array, at: number): number {
  const { length } = from
  for (let i = 0; i < length; i += 1) to[at + i] = from[i] as number
  return at + length
}

function escape(byte: number, out: Uint8Array, at: number): number {
  out[at] = BACKSLASH
  if (byte === QUOTE || byte === BACKSLASH) {
    out[at + 1] = byte
    return at + 2
  }
  // u00XX
  out[at + 1] = 117
  out[at + 2] = 48
  out[at + 3] = 48
  out[at + 4] = byte < 16 ? 48 : 49
  out[at + 5] = HEX.charCodeAt(byte & 15)
  return at + 6
}

const HEX = '0123456789abcdef'
