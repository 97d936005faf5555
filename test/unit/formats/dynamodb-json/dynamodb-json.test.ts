import { describe, expect, it } from 'vitest'
import type { Batch, RowsBatch, Value } from '../../../../src/core/batch.ts'
import { SluiceError } from '../../../../src/core/errors.ts'
import { createDynamoJsonEncoder } from '../../../../src/formats/dynamodb-json/dynamodb-json-encoder.ts'
import { createDynamoJsonReader } from '../../../../src/formats/dynamodb-json/dynamodb-json-reader.ts'
import { typedFromJson } from '../../../../src/formats/dynamodb-json/typed-from-json.ts'

const signal = new AbortController().signal
const place = { signal, url: 'items.json', warn: () => undefined }

async function* chunksOf(text: string, from = 0): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text).subarray(from)
}

async function read(text: string): Promise<{ columns: readonly string[]; batches: readonly RowsBatch[] }> {
  const reader = createDynamoJsonReader({ maxRowBytes: 1 << 20 })
  const head = await reader.head(chunksOf(text), place)
  const batches: RowsBatch[] = []
  for await (const batch of reader.read(chunksOf(text, head.first.byte), head, {
    ...place,
    form: 'rows',
    from: head.first,
  }))
    if (batch.form === 'rows') batches.push(batch)
  return { columns: head.columns.map((column) => column.name), batches }
}

const failure = async (text: string): Promise<SluiceError> => {
  try {
    await read(text)
  } catch (error) {
    if (error instanceof SluiceError) return error
  }
  throw new Error('it was read')
}

const all =
  '{"Item":{"id":{"S":"é\\n"},"n":{"N":"-1.5E+10"},"b":{"B":"AQI="},"t":{"BOOL":true},"z":{"NULL":true},"ss":{"SS":["a","b"]},"m":{"M":{"x":{"L":[]}}}}}'

describe('the reader', () => {
  it('reads wrapped and bare lines alike', async () => {
    const { columns, batches } = await read(`${all}\n{"id":{"S":"2"},"more":{"N":"1"}}\n`)
    expect(columns).toEqual(['id', 'n', 'b', 't', 'z', 'ss', 'm', 'more'])
    const typed = (text: string): Value => ({ kind: 'typed-json', text })
    expect(batches.flatMap((batch) => batch.rows)).toEqual([
      [
        'é\n',
        { kind: 'number', text: '-1.5E+10' },
        Buffer.from([1, 2]),
        true,
        null,
        typed('{"SS":["a","b"]}'),
        typed('{"M":{"x":{"L":[]}}}'),
        undefined,
      ],
      ['2', undefined, undefined, undefined, undefined, undefined, undefined, { kind: 'number', text: '1' }],
    ])
  })

  describe('what a Scan answers', () => {
    const items = ['{"id":{"S":"a"}}', '{"id":{"S":"]}"},"n":{"N":"1"}}']
    const end = '"Count":2,"ScannedCount":2,"ConsumedCapacity":null}'

    it.each([
      ['as the command line prints it', JSON.stringify(JSON.parse(`{"Items":[${items.join()}],${end}`), null, 4)],
      ['on one line', `{"Items":[${items.join()}],${end}\n`],
      ['with counts first', `{"Count":2, "Items" : [${items.join(',\n')}],"ScannedCount":2}`],
      ['with nothing else', `\n{"Items":[${items.join()}]}`],
    ])('%s, is its items', async (_, text) => {
      const { batches } = await read(text)
      expect(batches.flatMap((batch) => batch.rows.map((row) => row[0]))).toEqual(['a', ']}'])
      const [first] = batches[0]?.places ?? []
      expect(text.slice(first?.byte)).toMatch(/^\{\s*"id"/)
      expect(first?.line).toBe(text.slice(0, first?.byte).split('\n').length)
    })

    it('without an item, is none', async () => {
      expect((await read('{"Items":[],"Count":0,"ScannedCount":0}')).batches).toEqual([])
    })

    it.each([`{"Items":[${items.join()}],"Count":2`, `{"Items":[${items.join()}]`, `{"Items":[${items.join()}]} x`])(
      'cut or followed by more, is an error: %s',
      async (text) => {
        expect(await failure(text)).toMatchObject({ code: 'SLUICE_JSON' })
      },
    )

    it.each(['"NextToken":"abc"', '"LastEvaluatedKey":{"id":{"S":"a"}}'])(
      'that is a page is told: %s',
      async (more) => {
        const warned: string[] = []
        const reader = createDynamoJsonReader({ maxRowBytes: 1 << 20 })
        const text = `{"Items":[${items.join()}],${more}}`
        const o = { ...place, warn: (message: string) => warned.push(message) }
        const head = await reader.head(chunksOf(text), o)
        for await (const batch of reader.read(chunksOf(text, head.first.byte), head, {
          ...o,
          form: 'rows',
          from: head.first,
        }))
          expect(batch.form).toBe('rows')
        expect(warned).toEqual([expect.stringContaining('not all')])
      },
    )

    it('an attribute called Items is one', async () => {
      expect((await read('{"Items":{"L":[]}}')).columns).toEqual(['Items'])
    })
  })

  it('tells an attribute called Item, S or M from a wrapped item', async () => {
    const names = async (line: string): Promise<readonly string[]> => (await read(line)).columns
    expect(await names('{"Item":{"S":"x"}}')).toEqual(['Item'])
    expect(await names('{"Item":{"M":{"S":{"S":"x"}}}}')).toEqual(['Item'])
    expect(await names('{"Item":{"S":{"N":"1"}}}')).toEqual(['S'])
    expect(await names('{"Item":{"M":{"S":"x"}}}')).toEqual(['M'])
    expect(await names('{"Item":{"S":"x"},"id":{"N":"1"}}')).toEqual(['Item', 'id'])
  })

  it.each([
    ['{"Item":{"id":{"S":"1"}}}\n{"Item":{"id":{"X":"1"}}}', 'SLUICE_JSON'],
    ['{"id":{"S":"1"}}\n{"id":"plain"}', 'SLUICE_JSON'],
    ['{"id":{"S":"1"}}\n{"id":{"N":"1x"}}', 'SLUICE_JSON'],
    ['{"id":{"S":"1"}}\n{"id":{"B":"a-b"}}', 'SLUICE_JSON'],
    ['{"id":{"S":"1"}}\n{"id":{"NS":["x"]}}', 'SLUICE_JSON'],
    ['{"id":{"S":"1"}}\n{"id":{"S":"\\ud800"}}', 'SLUICE_ENCODING'],
    ['{"id":{"S":"1"}}\n{"id":{"L":[{"S":"\\ud800"}]}}', 'SLUICE_ENCODING'],
  ])('names file, row and attribute of %s', async (text, code) => {
    expect(await failure(text)).toMatchObject({ code, where: { url: 'items.json', row: 2, line: 2, column: 'id' } })
  })
})

describe('the encoder', () => {
  const text = (batch: Batch): string => Buffer.from(createDynamoJsonEncoder().encode(batch)).toString()

  it('writes what was read, byte for byte', async () => {
    const lines = `${all}\n${all.replace('é', 'x')}\n`
    const [batch] = (await read(lines)).batches
    if (batch === undefined) throw new Error('no batch')
    expect(text(batch)).toBe(lines)
  })

  it('gives types to plain JSON, exactly', () => {
    expect(typedFromJson(' {"a" : [1, -2.50e3, "x\\"]", true, null, {}], "b":12345678901234567890123} ')).toBe(
      '{"M":{"a":{"L":[{"N":"1"},{"N":"-2.50e3"},{"S":"x\\"]"},{"BOOL":true},{"NULL":true},{"M":{}}]},"b":{"N":"12345678901234567890123"}}}',
    )
    expect(() => typedFromJson('{"a" 1}')).toThrow(expect.objectContaining({ code: 'SLUICE_JSON' }) as Error)
  })
})
