import { describe, expect, it } from 'vitest'
import type { Batch, Value } from '../../../../src/core/batch.ts'
import { SluiceError } from '../../../../src/core/errors.ts'
import type { FormatHead } from '../../../../src/core/ports.ts'
import { createCsvReader } from '../../../../src/formats/csv/csv-reader.ts'
import type { CsvReadOptions } from '../../../../src/formats/csv/csv-reader.ts'

type Options = Partial<CsvReadOptions>

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  if (bytes.byteLength > 0) yield bytes
}

async function read(
  input: string | Uint8Array,
  options: Options = {},
  form: 'csv' | 'rows' = 'rows',
): Promise<{ head: FormatHead; batches: Batch[]; warnings: string[] }> {
  const bytes = typeof input === 'string' ? Buffer.from(input) : input
  const warnings: string[] = []
  const place = {
    url: 's3://b/k.csv',
    signal: new AbortController().signal,
    warn: (message: string) => warnings.push(message),
  }
  const reader = createCsvReader({ maxRowBytes: 1 << 20, ...options })
  const head = await reader.head(once(bytes), place)
  const seekable = (head.state as { seekable: boolean }).seekable
  const batches: Batch[] = []
  const chunks = once(seekable ? bytes.subarray(head.first.byte) : bytes)
  for await (const batch of reader.read(chunks, head, { ...place, form, from: head.first })) batches.push(batch)
  return { head, batches, warnings }
}

async function rows(input: string | Uint8Array, options: Options = {}): Promise<Value[][]> {
  const { batches } = await read(input, options)
  return batches.flatMap((batch) => (batch.form === 'rows' ? batch.rows.map((row) => [...row]) : []))
}

async function clean(input: string | Uint8Array, options: Options = {}): Promise<string> {
  const { batches } = await read(input, options, 'csv')
  return batches.map((batch) => (batch.form === 'csv' ? Buffer.from(batch.bytes).toString('utf8') : '')).join('')
}

async function failure(work: Promise<unknown>): Promise<SluiceError> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (error instanceof SluiceError) return error
  throw new Error('no SluiceError')
}

describe('NULL and the empty string', () => {
  it('unquoted empty is NULL, quoted empty is empty', async () => {
    expect(await rows('a,b\n,""\n')).toEqual([[null, '']])
    expect(await rows('a,b\n,""\n', { empty: 'string' })).toEqual([['', '']])
    expect(await rows('a,b\n,""\n', { empty: 'omit' })).toEqual([[undefined, '']])
    expect(await clean('a,b\n,""\n', { empty: 'string' })).toBe('"",""\n')
  })

  it('null words count unquoted and whole only', async () => {
    const text = 'a,b,c\nNULL,"NULL",NULLS\n\\N,x,\n'
    expect(await rows(text, { nulls: ['NULL', '\\N'] })).toEqual([
      [null, 'NULL', 'NULLS'],
      [null, 'x', null],
    ])
    expect(await clean(text, { nulls: ['NULL', '\\N'] })).toBe(',"NULL",NULLS\n,x,\n')
    expect(await rows(text)).toEqual([
      ['NULL', 'NULL', 'NULLS'],
      ['\\N', 'x', null],
    ])
  })
})

describe('lines', () => {
  it('blank ones are skipped where there are two columns, NULL where there is one', async () => {
    expect(await rows('a,b\n\n1,2\n\r\n')).toEqual([['1', '2']])
    expect(await rows('a\n1\n\n2\n')).toEqual([['1'], [null], ['2']])
    expect(await clean('a,b\n\n1,2\n\n')).toBe('1,2\n')
    expect(await clean('a\n1\n\n2')).toBe('1\n\n2\n')
  })

  it('mixed ends are made one, a lone CR in a file with LF is data', async () => {
    expect(await clean('a,b\n1,2\r\n3,4\n')).toBe('1,2\n3,4\n')
    expect(await clean('a,b\r\n1,2\n3,4\r\n')).toBe('1,2\r\n3,4\r\n')
    expect(await clean('a,b\n1\r,2\n')).toBe('"1\r",2\n')
    expect(await rows('a,b\r1,2\r3,4')).toEqual([
      ['1', '2'],
      ['3', '4'],
    ])
  })

  it('whether a lone CR ends lines is not decided by what stands between quotes, escaped quotes or not', async () => {
    expect(await rows('a,b\r"x\ny",1\rz,2\r')).toEqual([
      ['x\ny', '1'],
      ['z', '2'],
    ])
    expect(await rows('a,b\r"x\\"\ny",1\rz,2\r', { escape: '\\' })).toEqual([
      ['x"\ny', '1'],
      ['z', '2'],
    ])
    expect(await rows('"a\\"\rb",c\n1,2\n', { escape: '\\' })).toEqual([['1', '2']])
  })

  it('a file of lone CRs may be longer than a row may be', async () => {
    const text = `a\r${'row\r'.repeat(50_000)}`
    expect(await rows(text, { maxRowBytes: 100_000 })).toHaveLength(50_000)
  })

  it('a bare \\. is data', async () => {
    expect(await rows('a\n\\.\n2\n')).toEqual([['\\.'], ['2']])
    expect(await clean('a\n\\.\n2\n')).toBe('"\\."\n2\n')
  })

  it('lines to skip are dropped whatever is in them, and counted', async () => {
    const { head } = await read('report "of\nnow\na,b\n1,2\n', { skipLines: 2 })
    expect(head.columns).toEqual([{ name: 'a' }, { name: 'b' }])
    expect(head.first).toEqual({ byte: 19, row: 0, line: 3 })
  })

  it.each([
    [
      'a lone CR ends them, and a value has an LF',
      'report\ra,b\r1,"x\ny"\r2,z\r',
      [
        ['1', 'x\ny'],
        ['2', 'z'],
      ],
    ],
    [
      'an LF ends them, and a lone CR is in them',
      're\rport\na,b\n1,x\n2,z\n',
      [
        ['1', 'x'],
        ['2', 'z'],
      ],
    ],
    ['CRLF ends them, and a lone CR is in a value', 'report\r\na,b\r\n1,"x\ry"\r\n', [['1', 'x\ry']]],
    ['a lone CR ends them, and nothing ends the rest', 'report\ra,b', []],
  ])('skipped lines: %s', async (_, text, wanted) => {
    expect(await rows(text, { skipLines: 1 })).toEqual(wanted)
    expect((await read(text, { skipLines: 1 })).head.columns).toEqual([{ name: 'a' }, { name: 'b' }])
  })
})

describe('header', () => {
  it('a duplicate or empty name is an error unless the names do not matter', async () => {
    expect((await failure(rows('a,a\n1,2\n'))).code).toBe('SLUICE_CSV_HEADER')
    expect((await failure(rows('a,\n1,2\n'))).code).toBe('SLUICE_CSV_HEADER')
    expect(await rows('a,a\n1,2\n', { header: true, columns: ['x', 'y'] })).toEqual([['1', '2']])
    expect((await read('a,a,\n1,2,3\n', { byPosition: true })).head.columns.map((column) => column.name)).toEqual([
      'a',
      'column2',
      'column3',
    ])
  })

  it('without one, names are given or made up', async () => {
    expect(await rows('1,2\n', { columns: ['x', 'y'] })).toEqual([['1', '2']])
    const { head } = await read('1,2\n', { header: false })
    expect(head).toMatchObject({ named: false, columns: [{ name: 'column1' }, { name: 'column2' }] })
  })

  it('its names may hold line ends, follow a byte-order mark and blank lines, and end the file', async () => {
    for (const end of ['\n', '\r\n', '\r', '']) {
      const { head, batches } = await read(`\ufeff"a\nb","c"",\r\nd"${end}`)
      expect(head.columns).toEqual([{ name: 'a\nb' }, { name: 'c",\r\nd' }])
      expect(batches).toEqual([])
    }
    expect((await read('\n\r\na,b\n1,2')).head.columns).toEqual([{ name: 'a' }, { name: 'b' }])
    expect(await rows('1,2', { header: false })).toEqual([['1', '2']])
  })

  it('no bytes are no rows, and a warning', async () => {
    const { batches, warnings } = await read('')
    expect(batches).toEqual([])
    expect(warnings).toHaveLength(1)
  })
})

describe('bad rows', () => {
  it.each([
    [
      'unterminated',
      'a,b\n1,2\n3,"x\ny\n',
      'SLUICE_CSV_UNTERMINATED_QUOTE',
      { row: 2, line: 3, byte: 10, column: 'b' },
    ],
    ['text after a quote', 'a,b\n1,"x"y\n', 'SLUICE_CSV_QUOTE', { row: 1, line: 2, byte: 9, column: 'b' }],
    ['quote inside', 'a,b\n1,5" pipe\n', 'SLUICE_CSV_QUOTE', { row: 1, line: 2, byte: 7, column: 'b' }],
    ['NUL', 'a,b\n1,\0\n', 'SLUICE_NUL', { row: 1, line: 2, byte: 6, column: 'b' }],
  ])('%s', async (_, text, code, where) => {
    for (const form of ['rows', 'csv'] as const) {
      const error = await failure(read(text, {}, form))
      expect(error.code).toBe(code)
      expect(error.where).toEqual({ url: 's3://b/k.csv', ...where })
    }
  })

  it('field counts, and what makes them right', async () => {
    expect(await failure(rows('a,b\n1\n'))).toMatchObject({
      code: 'SLUICE_CSV_FIELD_COUNT',
      where: { row: 1, line: 2, byte: 4, column: 'b' },
    })
    expect((await failure(rows('a,b\n1,2,3\n'))).code).toBe('SLUICE_CSV_FIELD_COUNT')
    expect(await rows('a,b\n1\n', { ragged: 'fill' })).toEqual([['1', null]])
    expect(await rows('a,b\n1,2,3\n', { ragged: 'trim' })).toEqual([['1', '2']])
    expect(await clean('a,b\n1\n', { ragged: 'fill' })).toBe('1,\n')
  })

  it('a row longer than the bound', async () => {
    const error = await failure(rows(`a\n"${'x\n'.repeat(400_000)}"\n`, { maxRowBytes: 100_000 }))
    expect(error).toMatchObject({ code: 'SLUICE_ROW_TOO_LONG', where: { row: 1, line: 2, byte: 2 } })
  })

  it('NULs are dropped on demand', async () => {
    expect(await rows('a,b\n1\x000,x\n', { onNul: 'strip' })).toEqual([['10', 'x']])
    const { warnings } = await read('a,b\n1\x000,x\n', { onNul: 'strip' })
    expect(warnings).toHaveLength(1)
  })
})

describe('encodings', () => {
  const latin = Buffer.concat([Buffer.from('a,b\n1,ok\n2,caf'), Buffer.from([0xe9, 0x80]), Buffer.from('\n')])

  it('broken UTF-8 is found, or replaced', async () => {
    expect(await failure(rows(latin))).toMatchObject({
      code: 'SLUICE_ENCODING',
      where: { row: 2, line: 3, byte: 14, column: 'b' },
    })
    expect(await failure(clean(latin))).toMatchObject({
      code: 'SLUICE_ENCODING',
      where: { row: 2, line: 3, byte: 14, column: 'b' },
    })
    const surrogate = Buffer.from([0x61, 10, 0xed, 0xa0, 0x80, 10])
    expect((await failure(rows(surrogate))).code).toBe('SLUICE_ENCODING')
    expect((await rows(latin, { onInvalidUtf8: 'replace' }))[1]?.[1]).toMatch(/^caf\ufffd+$/)
  })

  it('windows-1252, and others by name', async () => {
    expect(await rows(latin, { encoding: 'windows-1252' })).toEqual([
      ['1', 'ok'],
      ['2', 'café€'],
    ])
    const japanese = Buffer.concat([Buffer.from('a\n'), Buffer.from([0x93, 0xfa, 0x96, 0x7b]), Buffer.from('\n')])
    expect(await rows(japanese, { encoding: 'shift_jis' })).toEqual([['日本']])
    const broken = Buffer.concat([Buffer.from('a\n1\n'), Buffer.from([0x93, 0xfa, 0xff]), Buffer.from('\n')])
    expect(await failure(rows(broken, { encoding: 'shift_jis' }))).toMatchObject({
      code: 'SLUICE_ENCODING',
      where: { row: 2, line: 3, byte: 7 },
    })
  })

  it('a byte-order mark wins', async () => {
    expect(await rows('\ufeffa\né\n', { encoding: 'windows-1252' })).toEqual([['é']])
    expect(await rows(Buffer.from('\ufeffa\né\n', 'utf16le'))).toEqual([['é']])
    expect(await rows(Buffer.from('\ufeffa\né\n', 'utf16le').swap16())).toEqual([['é']])
    const half = Buffer.concat([
      Buffer.from('\ufeffa\nx', 'utf16le'),
      Buffer.from([0x00, 0xd8]),
      Buffer.from('y\n', 'utf16le'),
    ])
    expect(await failure(rows(half))).toMatchObject({ code: 'SLUICE_ENCODING', where: { row: 1, line: 2, byte: 3 } })
  })
})

describe('quotes and delimiters', () => {
  it('quote none makes them plain characters', async () => {
    expect(await rows('a,b\n5" pipe,"x"\n', { quote: 'none' })).toEqual([['5" pipe', '"x"']])
    expect(await clean('a,b\n5" pipe,"x"\n', { quote: 'none' })).toBe('"5"" pipe","""x"""\n')
  })

  it('an escape that is not the quote', async () => {
    expect(await rows('a,b\n"x\\"y\\\\z",1\n', { escape: '\\' })).toEqual([['x"y\\z', '1']])
  })

  it('a delimiter of several bytes leaves as a comma', async () => {
    expect(await rows('a§b\n1,2§"x§y"\n', { delimiter: '§' })).toEqual([['1,2', 'x§y']])
    expect(await clean('a§b\n1,2§"x§y"\n', { delimiter: '§' })).toBe('"1,2","x§y"\n')
  })

  it.each<Options>([
    { delimiter: '"' },
    { delimiter: '\n' },
    { delimiter: '||' },
    { delimiter: '' },
    { quote: 'é' },
    { quote: '\r' },
    { escape: 'ab' },
    { escape: ',' },
    { encoding: 'klingon' },
    { columns: ['a', 'a'] },
    { skipLines: -1 },
    { nulls: ['a\nb'] },
  ])('refuses %j', (options) => {
    expect(() => createCsvReader({ maxRowBytes: 1000, ...options })).toThrow(SluiceError)
  })
})
