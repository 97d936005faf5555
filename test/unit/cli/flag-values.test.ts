import { describe, expect, it } from 'vitest'
import * as v from '../../../src/cli/flag-values.ts'
import { SluiceError } from '../../../src/core/errors.ts'

const refuses = (value: v.FlagValue, text: string): SluiceError => {
  try {
    value.parse(text, 'flag')
  } catch (error) {
    if (error instanceof SluiceError) return error
    throw error
  }
  throw new Error(`${text} was accepted`)
}

describe('values of flags', () => {
  it('choice takes its words, names the nearest for another, and refuses what is not built by another code', () => {
    const value = v.choice(['csv', 'jsonl', 'parquet'], ['parquet'])
    expect(value.parse('jsonl', 'flag')).toBe('jsonl')
    expect(refuses(value, 'jsnol').message).toContain('did you mean jsonl?')
    expect(refuses(value, 'jsnol').code).toBe('SLUICE_USAGE')
    expect(refuses(value, 'parquet').code).toBe('SLUICE_NOT_YET')
    expect(value.choices).toEqual(['csv', 'jsonl'])
  })

  it('whole takes numbers from its least on, and auto where allowed', () => {
    expect(v.whole(0, { auto: true }).parse('0', 'flag')).toBe(0)
    expect(v.whole(1, { auto: true }).parse('auto', 'flag')).toBe('auto')
    for (const text of ['0', '-1', '1.5', '1e3', '', 'auto', '9999999999999999'])
      refuses(v.whole(1, { auto: false }), text)
  })

  it('whole and sizes name the most and the least that can work', () => {
    const value = v.whole(0, { auto: true, most: 256 })
    expect(value.parse('256', 'flag')).toBe(256)
    expect(refuses(value, '257').hint).toBe('a whole number from 0 to 256, or auto')
    expect(v.sizeFrom('1MiB').parse('1MiB', 'flag')).toBe(1_048_576)
    expect(refuses(v.sizeFrom('1MiB'), '10')).toMatchObject({ code: 'SLUICE_USAGE', hint: '1MiB at least' })
  })

  it('names splits at commas, save those in double quotes', () => {
    expect(v.names.parse('a,b', 'flag')).toEqual(['a', 'b'])
    expect(v.names.parse('a,"b,c","d""e"', 'flag')).toEqual(['a', 'b,c', 'd"e'])
    refuses(v.names, 'a,,b')
    refuses(v.names, 'a,')
    refuses(v.names, '')
  })

  it('pairs splits at commas, and a piece without = belongs to the one before it', () => {
    const types = v.pairs({ split: true, form: 'column=TYPE' })
    expect(types.parse('price=numeric(10,2),id=integer', 'flag')).toEqual(['price=numeric(10,2)', 'id=integer'])
    expect(v.pairs({ split: false, form: 'c=t' }).parse('note=a,b=c', 'flag')).toEqual(['note=a,b=c'])
    expect(v.pairs({ split: false, form: 'c=t' }).parse('note=', 'flag')).toEqual(['note='])
    refuses(types, '=integer')
    refuses(types, 'integer')
  })

  it('oneByte takes one byte, spells the tab, and knows none where it may', () => {
    const value = v.oneByte({ none: true })
    expect(value.parse(';', 'flag')).toBe(';')
    expect(value.parse(String.raw`\t`, 'flag')).toBe('\t')
    expect(value.parse('tab', 'flag')).toBe('\t')
    expect(value.parse('none', 'flag')).toBe('none')
    for (const text of ['', 'ab', 'é', '\n', '\r']) refuses(value, text)
    refuses(v.oneByte({ none: false }), 'none')
  })

  it('toggle says what is true of the key', () => {
    expect(v.toggle.parse('true', 'header')).toBe(true)
    expect(v.toggle.parse('0', 'header')).toBe(false)
    refuses(v.toggle, 'maybe')
  })

  it('encoding takes the names that WHATWG knows', () => {
    expect(v.encoding.parse('latin1', 'flag')).toBe('windows-1252')
    expect(v.encoding.parse('UTF-16LE', 'flag')).toBe('utf-16le')
    expect(refuses(v.encoding, 'utf-9').code).toBe('SLUICE_USAGE')
  })

  it('httpUrl takes http and https, and does not repeat what else it was given', () => {
    expect(v.httpUrl.parse('http://127.0.0.1:9000', 'flag')).toBe('http://127.0.0.1:9000')
    for (const text of ['127.0.0.1:9000', 's3://bucket', 'http://'])
      expect(refuses(v.httpUrl, text).message).not.toContain(text)
  })

  it('replacement wants a column and three delimiters of any kind', () => {
    expect(v.replacement.parse('postcode=/ //', 'flag')).toEqual(['postcode=/ //'])
    expect(v.replacement.parse('a=|x|y|g', 'flag')).toEqual(['a=|x|y|g'])
    for (const text of ['postcode', 'postcode=', 'postcode=/a/b', '=/a/b/']) refuses(v.replacement, text)
  })
})
