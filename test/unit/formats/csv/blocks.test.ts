import { describe, expect, it } from 'vitest'
import { BufferPool, giveBack } from '../../../../src/core/lent-buffers.ts'
import { Rewindable } from '../../../../src/connectors/file/chunks.ts'
import { createCsvReader } from '../../../../src/formats/csv/csv-reader.ts'

const place = { url: 's3://b/k.csv', signal: new AbortController().signal, warn: () => undefined }

function people(rows: number): Buffer {
  const lines = Array.from({ length: rows }, (_, i) => `${i},name${(i * 7919) % rows},"${'x'.repeat(i % 50)}"\n`)
  return Buffer.from(`id,name,note\n${lines.join('')}`)
}

/** Chunks as a socket gives them: views of lent buffers, of which each is overwritten as soon as it is lent again. */
async function* lent(bytes: Buffer, sizes: readonly number[]): AsyncGenerator<Uint8Array> {
  const pool = new BufferPool(256 * 1024)
  for (let at = 0, i = 0; at < bytes.byteLength; i += 1) {
    const size = Math.min(sizes[i % sizes.length] ?? 1, bytes.byteLength - at)
    const loan = pool.take()
    loan.buffer.fill(0x5a)
    bytes.copy(loan.buffer, 0, at, at + size)
    loan.lent(size)
    loan.close()
    at += size
    yield loan.buffer.subarray(0, size)
  }
}

describe('blocks of lent chunks', () => {
  it.each([[[1000]], [[70_000]], [[200_000]], [[256 * 1024]], [[130_000, 300, 90_000, 1]], [[65_536, 131_072]]])(
    'are whole, and their memory is used again, by chunks of %j bytes',
    async (sizes) => {
      const bytes = people(100_000)
      const reader = createCsvReader({ maxRowBytes: 1 << 20 })
      const head = await reader.head(lent(bytes, sizes), place)
      const memory = new Set<ArrayBufferLike>()
      let text = ''
      const rest = bytes.subarray(head.first.byte)
      const held: Uint8Array[] = []
      for await (const batch of reader.read(lent(rest, sizes), head, { ...place, form: 'csv', from: head.first })) {
        if (batch.form !== 'csv') throw new Error(batch.form)
        memory.add(batch.bytes.buffer)
        held.push(batch.bytes)
        // As a lane does: looked at later, some at once, then given back.
        if (held.length < 4) continue
        for (const one of held) text += Buffer.from(one).toString('latin1')
        for (const one of held.splice(0)) giveBack(one)
      }
      for (const one of held) text += Buffer.from(one).toString('latin1')
      expect(text === rest.toString('latin1')).toBe(true)
      expect(rest.byteLength).toBeGreaterThan(16 * 256 * 1024)
      expect(memory.size).toBeLessThanOrEqual(14)
    },
  )

  it('are not given back by who only looks at the head: they are read once more', async () => {
    const names = Array.from({ length: 2000 }, (_, i) => `column${i}`)
    const row = names.map((_, i) => String(i)).join(',')
    const bytes = Buffer.from(`${names.join(',')}\n${`${row}\n`.repeat(100)}`)
    const reader = createCsvReader({ maxRowBytes: 1 << 20 })
    const stream = new Rewindable(lent(bytes, [1000]))
    const head = await reader.head(stream.look(), place)
    let text = ''
    for await (const chunk of stream.rest()) {
      text += Buffer.from(chunk).toString('latin1')
      giveBack(chunk)
    }
    expect(head.columns).toHaveLength(2000)
    expect(text === bytes.toString('latin1')).toBe(true)
  })
})
