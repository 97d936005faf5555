import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { RowsBatch, Value } from '../../src/core/batch.ts'
import { SluiceError } from '../../src/core/errors.ts'
import { createJsonLinesEncoder } from '../../src/formats/jsonl/jsonl-encoder.ts'
import { createJsonLinesReader } from '../../src/formats/jsonl/jsonl-reader.ts'

const place = { url: 'test:file', signal: new AbortController().signal, warn: () => undefined }

async function* inChunks(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += size) yield bytes.subarray(at, at + size)
}

async function read(bytes: Uint8Array, chunkBytes: number): Promise<RowsBatch[]> {
  const reader = createJsonLinesReader({ maxRowBytes: 1 << 20 })
  const head = await reader.head(inChunks(bytes, chunkBytes), place)
  const seekable =
    typeof head.state === 'object' && head.state !== null && 'seekable' in head.state && head.state.seekable === true
  const rest = seekable ? bytes.subarray(head.first.byte) : bytes
  const batches: RowsBatch[] = []
  for await (const batch of reader.read(inChunks(rest, chunkBytes), head, {
    ...place,
    form: 'rows',
    from: head.first,
  })) {
    if (batch.form === 'rows') batches.push(batch)
  }
  return batches
}

/** A row as the object that JSON.parse would make of it: numbers by Number, nested values parsed. */
function asObjects(batches: readonly RowsBatch[]): unknown[] {
  return batches.flatMap((batch) =>
    batch.rows.map((row) =>
      Object.fromEntries(
        batch.columns.flatMap((name, index) => (row[index] === undefined ? [] : [[name, plain(row[index])]])),
      ),
    ),
  )
}

function plain(value: Value): unknown {
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value
  return JSON.parse(value.text) as unknown
}

const chunkBytes = fc.integer({ min: 1, max: 200 })
const wellFormed = fc.string({ unit: 'grapheme', maxLength: 20 }).filter((text) => !text.includes('\0'))
const nested = fc.jsonValue({ maxDepth: 2 }).filter((value) => !/\\ud[89a-f]/i.test(JSON.stringify(value)))
const objects = fc.array(
  fc.dictionary(
    wellFormed,
    fc.oneof(wellFormed, fc.double({ noNaN: true, noDefaultInfinity: true }), fc.boolean(), fc.constant(null), nested),
    { maxKeys: 6, noNullPrototype: true },
  ),
  { maxLength: 12 },
)

describe('JSON Lines', () => {
  it('gives the objects that JSON.parse gives, as lines and as an array, in any chunks', async () => {
    await fc.assert(
      fc.asyncProperty(
        objects,
        chunkBytes,
        fc.constantFrom('lines', 'crlf', 'array', 'pretty'),
        async (list, size, layout) => {
          const wanted: unknown = JSON.parse(JSON.stringify(list))
          const lines = list.map((object) => JSON.stringify(object))
          const text =
            layout === 'lines'
              ? lines.join('\n')
              : layout === 'crlf'
                ? lines.map((line) => `${line}\r\n`).join('\r\n')
                : JSON.stringify(list, null, layout === 'pretty' ? 2 : 0)
          expect(asObjects(await read(Buffer.from(text), size))).toEqual(wanted)
        },
      ),
      { numRuns: 200 },
    )
  })

  it('are given back byte for byte by the encoder', async () => {
    await fc.assert(
      fc.asyncProperty(objects, chunkBytes, async (list, size) => {
        const batches = await read(Buffer.from(list.map((object) => `${JSON.stringify(object)}\n`).join('')), size)
        const encoder = createJsonLinesEncoder({ columns: [] })
        const once = Buffer.concat([...batches.map((batch) => encoder.encode(batch)), encoder.end()])
        expect(asObjects(await read(once, size))).toEqual(asObjects(batches))
        const again = await read(once, size)
        expect(
          Buffer.concat(again.map((batch) => createJsonLinesEncoder({ columns: [] }).encode(batch))).toString(),
        ).toBe(once.toString())
      }),
      { numRuns: 100 },
    )
  })

  it('go wrong where JSON.parse does', async () => {
    const token = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"',
      '"a"',
      '"b":',
      '1',
      '-',
      '0',
      '.5',
      'e',
      'true',
      'null',
      ' ',
      '\t',
      '\\',
      '\\u00e9',
      'x',
      '{"a":1}',
      '"a":{"b":[1]}',
    )
    await fc.assert(
      fc.asyncProperty(
        fc.array(token, { maxLength: 10 }).map((parts) => `{${parts.join('')}`),
        chunkBytes,
        async (line, size) => {
          const wanted = parsed(line)
          const got = await read(Buffer.from(line), size).then(
            (batches) => asObjects(batches)[0],
            (error: unknown) => {
              if (error instanceof SluiceError) return error.message.includes('twice') ? wanted : undefined
              throw error
            },
          )
          expect(got).toEqual(wanted)
        },
      ),
      { numRuns: 2000 },
    )
  })

  it('end on any bytes, with a SluiceError if with one, the same in any chunks', async () => {
    const byte = fc.oneof(fc.constantFrom(...Buffer.from('{}[]",:\\u0n\n\r e1')), fc.nat({ max: 255 }))
    await fc.assert(
      fc.asyncProperty(
        fc.array(byte, { maxLength: 60 }),
        fc.constantFrom('', '{"a":', '[{"a":', '{"a":1}\n'),
        chunkBytes,
        async (bytes, begin, size) => {
          const input = Buffer.concat([Buffer.from(begin), Uint8Array.from(bytes)])
          const outcome = (cut: number) =>
            read(input, cut).then(
              (batches) => JSON.stringify(asObjects(batches)),
              (error: unknown) => {
                if (error instanceof SluiceError) return `${error.code} ${JSON.stringify(error.where)}`
                throw error
              },
            )
          expect(await outcome(size)).toBe(await outcome(1000))
        },
      ),
      { numRuns: 1000 },
    )
  })
})

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}
