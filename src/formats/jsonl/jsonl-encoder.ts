import type { Value } from '../../core/batch.ts'
import { SluiceError } from '../../core/errors.ts'
import type { FormatEncoder } from '../../core/ports.ts'
import { countLost, type LostTypes, plainJson } from '../typed-json.ts'

/** RFC 8259, section 6. */
const JSON_NUMBER = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/
const EMPTY = new Uint8Array(0)

/**
 * Writes JSON Lines in UTF-8, LF line ends: numbers bare by their own text (NaN, Infinity and what else JSON has no number for as strings), nested
 * values as they are (line ends in them become blanks; typed ones without their types), bytes as base64, `undefined` left out. `columns` only set the order in which keys are
 * prepared: a column that a batch has besides is written as well.
 */
export function createJsonLinesEncoder(options: { readonly columns: readonly string[] }): FormatEncoder {
  let columns = options.columns
  let keys = columns.map(keyText)
  const lost: LostTypes = new Map()
  return {
    encode: (batch) => {
      if (batch.form !== 'rows') throw new SluiceError('SLUICE_INTERNAL', `JSON Lines cannot be made of ${batch.form}`)
      if (batch.columns !== columns) {
        columns = batch.columns
        keys = columns.map(keyText)
      }
      let text = ''
      for (const row of batch.rows) text += rowText(row, keys, lost)
      return Buffer.from(text)
    },
    end: () => EMPTY,
    lost: () => lost,
  }
}

function keyText(name: string): string {
  return `${JSON.stringify(name)}:`
}

function rowText(row: readonly Value[], keys: readonly string[], lost: LostTypes): string {
  let text = ''
  for (let index = 0; index < keys.length; index += 1) {
    const value = row[index]
    if (value !== undefined) text += `${text === '' ? '' : ','}${keys[index] ?? ''}${valueText(value, lost)}`
  }
  return `{${text}}\n`
}

function valueText(value: Exclude<Value, undefined>, lost: LostTypes): string {
  if (typeof value === 'string') return JSON.stringify(value)
  if (value === null) return 'null'
  if (typeof value === 'boolean') return value ? 'true' : 'false'
  if (value instanceof Uint8Array) {
    countLost(lost, 'B')
    return `"${Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64')}"`
  }
  if (value.kind === 'typed-json') return plainJson(value.text, lost)
  if (value.kind === 'json') return value.text.replace(/[\r\n]/g, ' ')
  return JSON_NUMBER.test(value.text) ? value.text : JSON.stringify(value.text)
}
