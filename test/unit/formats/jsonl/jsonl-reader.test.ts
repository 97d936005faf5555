import { describe, expect, it } from 'vitest'
import type { RowsBatch, Value } from '../../../../src/core/batch.ts'
import { SluiceError } from '../../../../src/core/errors.ts'
import { createJsonLinesReader, type JsonLinesReaderOptions } from '../../../../src/formats/jsonl/jsonl-reader.ts'

async function* inChunks(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += size) yield bytes.subarray(at, at + size)
}

type Wishes = Partial<JsonLinesReaderOptions> & { chunkBytes?: number }

async function read(
  input: string | Uint8Array,
  { chunkBytes = 1 << 20, ...options }: Wishes = {},
): Promise<{ names: string[]; batches: RowsBatch[] }> {
  const bytes = Buffer.from(input)
  const reader = createJsonLinesReader({ maxRowBytes: 1 << 20, ...options })
  const o = { url: 's3://b/k.jsonl', signal: new AbortController().signal, warn: () => undefined }
  const head = await reader.head(inChunks(bytes, chunkBytes), o)
  const seekable =
    typeof head.state === 'object' && head.state !== null && 'seekable' in head.state && head.state.seekable === true
  const batches: RowsBatch[] = []
  const rest = seekable ? bytes.subarray(head.first.byte) : bytes
  for await (const batch of reader.read(inChunks(rest, chunkBytes), head, { ...o, form: 'rows', from: head.first })) {
    if (batch.form !== 'rows') throw new Error('not rows')
    batches.push(batch)
  }
  return { names: head.columns.map((column) => column.name), batches }
}

async function rows(input: string | Uint8Array, options: Wishes = {}): Promise<Value[][]> {
  const { batches } = await read(input, options)
  return batches.flatMap((batch) => batch.rows.map((row) => [...row]))
}

async function failure(input: string | Uint8Array, options: Wishes = {}): Promise<SluiceError> {
  const error: unknown = await read(input, options).then(
    (value) => value,
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof SluiceError)) throw new Error(`expected a SluiceError, got ${JSON.stringify(error)}`)
  return error
}

const number = (text: string): Value => ({ kind: 'number', text })
const json = (text: string): Value => ({ kind: 'json', text })

describe('values', () => {
  it('keeps numbers by their own text, at any length', async () => {
    for (const text of [
      '0',
      '-0',
      '10',
      '1.10',
      '1e5',
      '1E+05',
      '-0.000e-0',
      '9'.repeat(1000),
      `0.${'1'.repeat(500)}`,
      '1E400',
    ]) {
      expect(await rows(`{"a":${text}}`)).toEqual([[number(text)]])
    }
  })

  it('reads words, and a missing key as undefined', async () => {
    expect(await rows('{"a":true,"b":false}\n{"b":null}\n{}\n')).toEqual([
      [true, false],
      [undefined, null],
      [undefined, undefined],
    ])
  })

  it('keeps nested values by their own text', async () => {
    const nested = [
      '{}',
      '[]',
      '[1, 2.0,{"x":"]}"}]',
      '{"a" : {"b":["\\u0000\\"", null]}}',
      '{"a":1,"a":2}',
      '["é", "漢"]',
    ]
    for (const text of nested) expect(await rows(`{"v":${text},"w":1}`)).toEqual([[json(text), number('1')]])
  })

  it('decodes strings and keys', async () => {
    expect(await rows('{"a":"","b":"x\\n\\t\\"\\\\\\/\\b\\f\\r\\u00e9\\ud83d\\ude42é漢🙂"}')).toEqual([
      ['', 'x\n\t"\\/\b\f\ré🙂é漢🙂'],
    ])
    const { names } = await read('{"\\u0061b":1,"é":2,"":3,"__proto__":4}')
    expect(names).toEqual(['ab', 'é', '', '__proto__'])
  })

  it('takes white space of JSON between any two tokens', async () => {
    expect(await rows(' \t{ \t"a" \r: 1 ,\t"b":[ 1 ] } \t\r\n')).toEqual([[number('1'), json('[ 1 ]')]])
  })
})

describe('columns', () => {
  it('are the keys of the first rows, in order of appearance', async () => {
    expect((await read('{"b":1}\n{"a":2,"b":3}\n')).names).toEqual(['b', 'a'])
    expect((await read('{"b":1}\n{"a":2,"b":3}\n', { columns: ['a', 'b'] })).names).toEqual(['a', 'b'])
  })

  it('that come later are appended to their batch, and no row is short', async () => {
    const early = Array.from({ length: 5000 }, (_, i) => `{"id":${i},"text":"${'x'.repeat(100)}"}`)
    const { names, batches } = await read([...early, '{"id":1,"late":2}', ...early].join('\n'))
    expect(names).toEqual(['id', 'text'])
    const widths = batches.map((batch) => batch.columns)
    expect(widths.filter((columns) => columns.length === 3)).toEqual([['id', 'text', 'late']])
    for (const batch of batches) expect(batch.rows.every((row) => row.length === batch.columns.length)).toBe(true)
    const late = batches.flatMap((batch) => batch.rows).find((row) => row[2] !== undefined)
    expect(late).toEqual([number('1'), undefined, number('2')])
  })

  it('that --columns does not name are not dropped', async () => {
    const { names, batches } = await read('{"a":1,"b":2}', { columns: ['b', 'c'] })
    expect(names).toEqual(['b', 'c'])
    expect(batches[0]?.columns).toEqual(['b', 'c', 'a'])
    expect(batches[0]?.rows).toEqual([[number('2'), undefined, number('1')]])
  })

  it('may change their order from row to row', async () => {
    expect(await rows('{"a":1,"b":2,"c":3}\n{"c":6,"a":4}\n{"b":8,"c":9,"a":7}\n{"a":0,"b":0,"c":0}')).toEqual([
      [number('1'), number('2'), number('3')],
      [number('4'), undefined, number('6')],
      [number('7'), number('8'), number('9')],
      [number('0'), number('0'), number('0')],
    ])
  })
})

describe('layout', () => {
  it('reads an array of objects, however it is laid out', async () => {
    const wanted = [[number('1')], [number('2')]]
    for (const text of ['[{"a":1},{"a":2}]', ' \n [\n{"a":1}\n,\n{\n"a"\n:\n2\n}\n]\n ', '[{"a":1}, {"a":2}]\n\n']) {
      for (const chunkBytes of [1, 3, 1000]) expect(await rows(text, { chunkBytes })).toEqual(wanted)
    }
    expect(await rows('[]')).toEqual([])
    expect(await rows('[\n]')).toEqual([])
  })

  it('gives each row its line and byte', async () => {
    const lines = await read('\n{"a":1}\r\n\n{"a":2}')
    expect(lines.batches[0]?.places).toEqual([
      { row: 1, line: 2, byte: 1 },
      { row: 2, line: 4, byte: 11 },
    ])
    expect(lines.batches[0]?.end).toEqual({ row: 2, line: 3, byte: 18 })
    expect((await read('{"a":1}\n{"a":2}\n')).batches[0]?.end).toEqual({ row: 2, line: 2, byte: 16 })
    const array = await read('[{"a":1},\n\n{"a":\n2}, {"a":3}]')
    expect(array.batches[0]?.places).toEqual([
      { row: 1, line: 1, byte: 1 },
      { row: 2, line: 3, byte: 11 },
      { row: 3, line: 4, byte: 21 },
    ])
  })

  it('reads rows longer than a block, up to the limit', async () => {
    const long = 'x'.repeat(900_000)
    for (const text of [`{"a":"${long}"}\n{"a":"y"}\n`, `[{"a":"${long}"},{"a":"y"}]`]) {
      expect(await rows(text, { chunkBytes: 65_536 })).toEqual([[long], ['y']])
      const error = await failure(`${text.startsWith('[') ? '[{},' : '{}\n'}${text.replace('[', '')}`, {
        maxRowBytes: 100_000,
        chunkBytes: 65_536,
        columns: ['a'],
      })
      expect(error).toMatchObject({ code: 'SLUICE_ROW_TOO_LONG', where: { row: 2, url: 's3://b/k.jsonl' } })
    }
    const endless = Buffer.alloc(3_000_000, 0x78)
    expect((await failure(endless, { maxRowBytes: 400_000, chunkBytes: 65_536 })).code).toBe('SLUICE_ROW_TOO_LONG')
  })
})

describe('bad input', () => {
  const LINES: readonly [string, string, object][] = [
    ['a number', '{"a":1}\n12\n', { row: 2, line: 2, byte: 8 }],
    ['an array on a line', '{"a":1}\n[{"a":1}]\n', { row: 2, line: 2, byte: 8 }],
    ['plain text', '\nid,name\n', { row: 1, line: 2, byte: 1 }],
    ['two objects on a line', '{"a":1}{"a":2}\n', { row: 1, line: 1, byte: 7 }],
    ['an object over lines', '{\n"a":1}\n', { row: 1, line: 1, byte: 1 }],
    ['a cut string', '{"a":1}\n{"a":"x', { row: 2, line: 2, byte: 15 }],
    ['a cut object', '{"a":1', { row: 1, line: 1, byte: 6 }],
    ['a trailing comma', '{"a":1,}', { row: 1, byte: 7 }],
    ['a key without quotes', '{a:1}', { row: 1, byte: 1 }],
    ['apostrophes', "{'a':1}", { row: 1, byte: 1 }],
    ['no colon', '{"a" 1}', { row: 1, byte: 5 }],
    ['no value', '{"a":}', { row: 1, byte: 5 }],
    ['a wrong word', '{"a":nil}', { row: 1, byte: 6 }],
    ['NaN', '{"a":NaN}', { row: 1, byte: 5 }],
    ['a leading zero', '{"a":01}', { row: 1, byte: 6 }],
    ['a plus sign', '{"a":+1}', { row: 1, byte: 5 }],
    ['a bare point', '{"a":1.}', { row: 1, byte: 7 }],
    ['a bare exponent', '{"a":1e}', { row: 1, byte: 7 }],
    ['an unknown escape', '{"a":"\\x"}', { row: 1, byte: 7 }],
    ['a short \\u', '{"a":"\\u00g0"}', { row: 1, byte: 10 }],
    ['a tab in a string', '{"a":"\t"}', { row: 1, byte: 6 }],
    ['a fault in a nested value', '{"a":{"b":[1,]}}', { row: 1, byte: 13 }],
    ['too deep nesting', `{"a":${'['.repeat(2000)}`, { row: 1 }],
  ]
  it.each(LINES)('refuses %s', async (_, text, where) => {
    for (const chunkBytes of [1, 1000]) {
      const error = await failure(text, { chunkBytes })
      expect(error.code).toBe('SLUICE_JSON')
      expect(error.where).toMatchObject({ url: 's3://b/k.jsonl', ...where })
    }
  })

  const ARRAYS: readonly [string, string][] = [
    ['no end', '[{"a":1}'],
    ['no end after a comma', '[{"a":1},'],
    ['a cut element', '[{"a":1},{"a":'],
    ['a trailing comma', '[{"a":1},]'],
    ['a leading comma', '[,{"a":1}]'],
    ['no comma', '[{"a":1} {"a":2}]'],
    ['a number', '[{"a":1},2]'],
    ['text after it', '[{"a":1}] x'],
    ['a second array', '[{"a":1}]\n[{"a":1}]'],
    ['nothing but its beginning', '['],
  ]
  it.each(ARRAYS)('refuses an array with %s', async (_, text) => {
    for (const chunkBytes of [1, 1000]) expect((await failure(text, { chunkBytes })).code).toBe('SLUICE_JSON')
  })

  it.each(['{"a":1,\n"b":2}\n', '{\n  "a": 1\n}', '{"a":1}{"a":2}\n', '{"a":1},\n{"a":2}\n'])(
    'tells how objects become one a line: %j',
    async (text) => expect((await failure(text)).hint).toContain('jq -c'),
  )

  it('takes no cut array for whole', async () => {
    const text = '[{"a":1,"b":"x\\n"},\n{"a":-2.5e1,"b":[{}]}]'
    for (let end = 1; end < text.length; end += 1) expect((await failure(text.slice(0, end))).code).toBe('SLUICE_JSON')
  })

  it('names a key that comes twice, however it is spelled', async () => {
    expect(await failure('{"a":1}\n{"a":1,"b":2,"a":3}')).toMatchObject({
      code: 'SLUICE_JSON',
      where: { row: 2, column: 'a' },
    })
    expect(await failure('{"a":1,"\\u0061":3}')).toMatchObject({ code: 'SLUICE_JSON', where: { row: 1, column: 'a' } })
    expect(await failure('{"a":null,"a":null}')).toMatchObject({ code: 'SLUICE_JSON', where: { row: 1, column: 'a' } })
  })

  it('does as told with NUL characters', async () => {
    const text = '{"a":"x\\u0000y"}'
    expect(await rows(text)).toEqual([['x\0y']])
    expect(await failure(text, { onNul: 'error' })).toMatchObject({
      code: 'SLUICE_NUL',
      where: { row: 1, column: 'a' },
    })
    expect(await failure(text, { onNul: 'reject' })).toMatchObject({ code: 'SLUICE_NUL' })
    expect(await rows(text, { onNul: 'strip' })).toEqual([['xy']])
    expect(await failure('{"a":"x\0y"}')).toMatchObject({ code: 'SLUICE_NUL', where: { row: 1, byte: 7 } })
    expect(await rows('{"a":"x\0y"}\n{"a":"\0"}', { onNul: 'strip' })).toEqual([['xy'], ['']])
    expect(await rows('[{"a":"x\0y"}]', { onNul: 'strip', chunkBytes: 1 })).toEqual([['xy']])
    expect((await failure('{"a":1}\0')).code).toBe('SLUICE_JSON')
  })

  it('does as told with invalid text', async () => {
    const bad = Buffer.from('{"a":"ok"}\n{"a":"x\xffy"}\n', 'latin1')
    expect(await failure(bad)).toMatchObject({ code: 'SLUICE_ENCODING', where: { row: 2, line: 2, column: 'a' } })
    expect(await rows(bad, { onInvalidUtf8: 'replace' })).toEqual([['ok'], ['x\ufffdy']])
    const outside = Buffer.from('{"a":"ok"}\xff\n', 'latin1')
    expect((await failure(outside)).code).toBe('SLUICE_ENCODING')
    expect(await failure(Buffer.from('{"a":{"b":"\xe9"}}', 'latin1'))).toMatchObject({
      code: 'SLUICE_ENCODING',
      where: { column: 'a' },
    })
    const half = '{"a":"x\\ud83dy"}'
    expect(await failure(half)).toMatchObject({ code: 'SLUICE_ENCODING', where: { row: 1, column: 'a' } })
    expect(await rows(half, { onInvalidUtf8: 'replace' })).toEqual([['x\ufffdy']])
    expect(await rows('{"a":"\\ud83d\\ude42"}')).toEqual([['🙂']])
  })

  it('reads other encodings, and refuses unknown ones', async () => {
    expect(await rows(Buffer.from('{"a":"\xe9"}', 'latin1'), { encoding: 'iso-8859-1' })).toEqual([['é']])
    expect(await rows(Buffer.from('{"a":"é"}', 'utf16le'), { encoding: 'utf-16le', chunkBytes: 1 })).toEqual([['é']])
    expect((await failure('{}', { encoding: 'klingon' })).code).toBe('SLUICE_USAGE')
    const broken = Buffer.concat([
      Buffer.from('\ufeff{"a":"x"}\n{"a":"', 'utf16le'),
      Buffer.from([0x00, 0xd8, 0x22, 0x00, 0x7d, 0x00]),
    ])
    expect(await failure(broken)).toMatchObject({ code: 'SLUICE_ENCODING', where: { row: 2 } })
  })

  it('tells a bad row that lies behind the head when it is read', async () => {
    const text = `${'{"a":1}\n'.repeat(60_000)}oops\n`
    expect(await failure(text)).toMatchObject({
      code: 'SLUICE_JSON',
      where: { row: 60_001, line: 60_001, byte: 480_000 },
    })
  })
})
