import { describe, expect, it } from 'vitest'
import { firstBytes, Rewindable, sliceChunks } from '../../../../src/connectors/file/chunks.ts'

async function* chunksOf(text: string, size: number, ended: () => void = () => undefined): AsyncGenerator<Uint8Array> {
  try {
    for (let at = 0; at < text.length; at += size) yield Buffer.from(text.slice(at, at + size))
  } finally {
    ended()
  }
}

async function text(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const all: Uint8Array[] = []
  for await (const chunk of chunks) all.push(chunk)
  return Buffer.concat(all).toString()
}

describe('Rewindable', () => {
  it('gives again what was looked at', async () => {
    const stream = new Rewindable(chunksOf('abcdefgh', 3))
    expect(Buffer.from(await firstBytes(stream, 4)).toString()).toBe('abcd')
    expect(Buffer.from(await firstBytes(stream, 2)).toString()).toBe('ab')
    expect(await text(stream.rest())).toBe('abcdefgh')
  })

  it('ends what it reads when it is left early', async () => {
    let ended = 0
    const stream = new Rewindable(chunksOf('abcdefgh', 3, () => (ended += 1)))
    for await (const chunk of stream.rest()) {
      expect(chunk.byteLength).toBe(3)
      break
    }
    expect(ended).toBe(1)
  })

  it('frees what lies below when it is closed before anything was read of it', async () => {
    let ended = 0
    const below = new Rewindable(chunksOf('abcdefgh', 3, () => (ended += 1)))
    await firstBytes(below, 2)
    const stream = new Rewindable(below.rest(), () => below.close())
    await stream.close()
    expect(ended).toBe(1)
  })
})

describe('sliceChunks', () => {
  it.each([
    [0, 8],
    [2, 7],
    [3, 6],
    [5, 5],
    [0, Number.POSITIVE_INFINITY],
    [9, 12],
  ])('gives the bytes from %d to %d', async (start, end) => {
    expect(await text(sliceChunks(chunksOf('abcdefgh', 3), start, end))).toBe('abcdefgh'.slice(start, end))
  })
})
