import { describe, expect, it } from 'vitest'
import { openParquetEncoder } from '../../../../src/formats/parquet/parquet-encoder.ts'
import { ParquetFile } from '../../../../src/formats/parquet/parquet-file.ts'

describe('writer', () => {
  it('makes a file', async () => {
    const encoder = await openParquetEncoder({
      columns: [{ name: 'a', layout: { kind: 'int32' } }],
      codec: 'snappy',
      workers: 2,
    })
    const file = new ParquetFile({ schemaFooter: encoder.schemaFooter, version: '1' })
    const out = [file.begin()]
    for (let i = 0; i < 3; i += 1) {
      const group = await encoder.encode({
        form: 'columns',
        start: { byte: 0, row: 0, line: 0 },
        end: { byte: 0, row: 0, line: 0 },
        mayEnd: true,
        columns: ['a'],
        rows: 3,
        bufferBytes: 12,
        vectors: [
          {
            type: { kind: 'int32' },
            length: 3,
            nulls: 0,
            validity: null,
            offsets: null,
            items: null,
            values: new Uint8Array(Int32Array.of(1, 2, i).buffer),
          },
        ],
      })
      out.push(file.add(group))
    }
    out.push(file.end({ x: 'y' }))
    await encoder.close()
    const { writeFileSync } = await import('node:fs')
    writeFileSync('/work/tmp/parquet/a.parquet', Buffer.concat(out))
    expect(1).toBe(1)
  })
})
