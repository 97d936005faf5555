import { SluiceError } from '../../../core/errors.ts'
import type { RecordCursor } from '../../../formats/csv/record-cursor.ts'
import type { SeenKeys } from './key-seen.ts'
import type { ExtentPuts } from './put-batch.ts'
import type { PutWindow } from './put-window.ts'
import { MOST_ITEM_BYTES, checkItemSize } from '../item/validate.ts'
import { mostPutBytes, PUT_BEGIN, PUT_END, type CsvItemEncoder, writePut } from '../item/wire-json.ts'

/** Where puts go, and what they are counted by. */
export interface PutPlace {
  readonly window: PutWindow
  /** For `--dedupe error`. */
  readonly seen: SeenKeys | null
  readonly puts: ExtentPuts
}

/**
 * Puts the cursor's record into the window, whose `makeRoom` is to be called where its request is full then. @returns its bytes on the wire
 *
 * @throws as the encoder, and as checkPut
 */
export function putRecord(cursor: RecordCursor, encoder: CsvItemEncoder, { window, seen, puts }: PutPlace): number {
  const { open } = window
  const { at } = open
  const end = encoder.encode(cursor, open)
  checkPut(encoder.key, open.bytes, { start: at, end, seen })
  window.add(encoder.key, end, puts)
  return end - at
}

/** The same for an item that is written already, as `{"PutRequest":…}`. @throws as checkPut */
export function putItem(item: Uint8Array, key: string, place: PutPlace): number {
  return putWritten(key, place, {
    most: item.byteLength,
    write: (bytes, at) => {
      bytes.set(item, at)
      return at + item.byteLength
    },
  })
}

/** The same for an item by its attributes, as they go over the wire without braces. @throws as checkPut */
export function putAttributes(attributes: string, key: string, place: PutPlace): number {
  return putWritten(key, place, {
    most: mostPutBytes(attributes),
    write: (bytes, at) => writePut(attributes, bytes, at),
  })
}

function putWritten(
  key: string,
  { window, seen, puts }: PutPlace,
  o: { readonly most: number; readonly write: (bytes: Buffer, at: number) => number },
): number {
  const { open } = window
  open.reserve(o.most + 1)
  const { bytes, at } = open
  bytes[at] = open.separator
  const end = o.write(bytes, at + 1)
  checkPut(key, bytes, { start: at, end, seen })
  window.add(key, end, puts)
  return end - at
}

/** @throws SLUICE_VALUE where an item is too large; SLUICE_DUPLICATE_KEY where its key came before and that is an error */
function checkPut(
  key: string,
  bytes: Buffer,
  { start, end, seen }: { readonly start: number; readonly end: number; readonly seen: SeenKeys | null },
): void {
  // What goes over the wire is never shorter than what DynamoDB counts.
  if (end - start > MOST_ITEM_BYTES)
    checkItemSize(bytes.toString('utf8', start + PUT_BEGIN.byteLength, end - PUT_END.byteLength + 1))
  if (seen?.add(key) === true)
    throw new SluiceError('SLUICE_DUPLICATE_KEY', `the key comes a second time in the input`, {
      hint: 'remove the duplicate, or load with --dedupe last',
    })
}
