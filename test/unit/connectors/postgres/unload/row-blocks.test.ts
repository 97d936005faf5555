import { describe, expect, it } from 'vitest'
import { RowBlocks, type RowBlock, type RowRange } from '../../../../../src/connectors/postgres/unload/row-blocks.ts'

const ALL: RowRange = { skip: 0, limit: Number.POSITIVE_INFINITY }

/** A message as the server sends it: its kind, its length, its payload. */
function message(payload: string | Buffer, kind = 'd'): Buffer {
  const bytes = Buffer.from(payload)
  const head = Buffer.alloc(5, kind)
  head.writeUInt32BE(bytes.length + 4, 1)
  return Buffer.concat([head, bytes])
}

/** Feeds bytes in pieces of a size, as copy-out.ts does: what is left of a piece comes again before the next. */
function feed(blocks: RowBlocks, bytes: Buffer, size: number): void {
  let left = Buffer.alloc(0)
  for (let at = 0; at < bytes.length; at += size) {
    const piece = Buffer.concat([left, bytes.subarray(at, at + size)])
    left = piece.subarray(blocks.take(piece, 0))
  }
  if (!blocks.done) blocks.finish()
}

function drain(blocks: RowBlocks): RowBlock[] {
  const all: RowBlock[] = []
  for (let block = blocks.shift(); block !== undefined; block = blocks.shift()) all.push(block)
  return all
}

const text = (all: readonly RowBlock[]): string => Buffer.concat(all.map((block) => block.bytes)).toString()
const rows = (all: readonly RowBlock[]): number => all.reduce((sum, block) => sum + block.rows, 0)

describe('RowBlocks', () => {
  const lines = Array.from({ length: 300 }, (_, i) => `${'r'.repeat(i % 40)}${i}\n`)
  const stream = Buffer.concat(lines.map((line) => message(line)))

  it.each([1, 3, 7, 64, 1000, 1_000_000])('joins payloads, however the stream is cut: pieces of %i bytes', (size) => {
    const blocks = new RowBlocks(ALL)
    feed(blocks, stream, size)
    const all = drain(blocks)
    expect(text(all)).toBe(lines.join(''))
    expect(rows(all)).toBe(300)
  })

  it.each([
    [0, 10],
    [5, 1],
    [299, 5],
    [300, 5],
    [100, 200],
  ])('passes over %i rows and gives %i', (skip, limit) => {
    const blocks = new RowBlocks({ skip, limit })
    feed(blocks, stream, 50)
    expect(text(drain(blocks))).toBe(lines.slice(skip, skip + limit).join(''))
    expect(blocks.done).toBe(skip + limit <= 300)
    expect(blocks.short).toBe(false)
  })

  it('says where fewer rows came than were to be passed over', () => {
    const blocks = new RowBlocks({ skip: 301, limit: 5 })
    feed(blocks, stream, 5000)
    expect(drain(blocks)).toEqual([])
    expect(blocks.short).toBe(true)
  })

  it('ends a block of 512 KiB, gives a long row a block of its own, and says when enough waits', () => {
    const [short, long] = ['s'.repeat(99_999), 'l'.repeat(700_000)]
    const blocks = new RowBlocks(ALL)
    const sent = [short, short, short, short, short, short, long, short, '', 'x']
    feed(blocks, Buffer.concat(sent.map((line) => message(`${line}\n`))), 65_536)
    expect(blocks.sated).toBe(true)
    const all = drain(blocks)
    expect(all.map((block) => block.rows)).toEqual([5, 1, 1, 3])
    expect(text(all)).toBe(sent.map((line) => `${line}\n`).join(''))
    expect(blocks.sated).toBe(false)
  })

  it.each(['H', 'N', 'C', 'E', 'c'])('stops before a message of the kind %s', (kind) => {
    const blocks = new RowBlocks(ALL)
    const [first, other] = [message('a\n'), message('dd\0\0\0', kind)]
    const bytes = Buffer.concat([first, other, first])
    expect(blocks.take(bytes, 0)).toBe(first.length)
    expect(blocks.take(bytes, first.length)).toBe(first.length)
    expect(blocks.take(bytes, first.length + other.length)).toBe(bytes.length)
    blocks.finish()
    expect(text(drain(blocks))).toBe('a\na\n')
  })
})
