import { setImmediate as nextTurn } from 'node:timers/promises'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { SluiceError } from '../../../src/core/errors.ts'
import type { ByteRange, ObjectInfo, Store } from '../../../src/core/ports.ts'
import { readParallel } from '../../../src/stores/parallel-read.ts'

const signal = new AbortController().signal

/** A store of one object whose reads are watched, and can be made slow, short or broken. */
class WatchedStore implements Store {
  readonly bytes: Uint8Array
  readonly info: ObjectInfo
  readonly begun: ByteRange[] = []
  active = 0
  mostActive = 0
  /** Bytes that were handed out by reads. */
  delivered = 0
  pauses: (range: ByteRange) => number = () => 0
  breaks: (range: ByteRange) => 'short' | 'error' | 'hang' | null = () => null

  constructor(size: number, over: Partial<ObjectInfo> = {}) {
    this.bytes = Uint8Array.from({ length: size }, (_, n) => (n * 13 + (n >> 8)) & 255)
    const known = { key: 'k', url: 'k', size, etag: '"1"', modifiedMs: null, ranged: true, replayable: true }
    this.info = { ...known, ...over }
  }

  head(): Promise<ObjectInfo> {
    return Promise.resolve(this.info)
  }

  async *read(_: ObjectInfo, range: ByteRange, o: { signal: AbortSignal }): AsyncGenerator<Uint8Array> {
    this.begun.push(range)
    this.active += 1
    this.mostActive = Math.max(this.mostActive, this.active)
    try {
      const end = Math.min(range.end, this.bytes.byteLength)
      for (let at = range.start; at < end; at += 7) {
        for (let n = this.pauses(range); n > 0; n -= 1) await nextTurn()
        o.signal.throwIfAborted()
        const how = this.breaks(range)
        if (how === 'error') throw new SluiceError('SLUICE_NETWORK', `broke in ${range.start}`)
        if (how === 'hang')
          await new Promise((_resolve, reject) => o.signal.addEventListener('abort', () => reject(o.signal.reason)))
        const chunk = this.bytes.slice(at, Math.min(at + 7, end))
        this.delivered += chunk.byteLength
        yield chunk
        if (how === 'short') return
      }
    } finally {
      this.active -= 1
    }
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}

async function collect(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const all: Uint8Array[] = []
  for await (const chunk of chunks) all.push(chunk)
  return Buffer.concat(all)
}

describe('parallel reading', () => {
  it('gives the same bytes as one read, whatever the ranges and whoever is first', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          size: fc.integer({ min: 0, max: 400 }),
          start: fc.integer({ min: 0, max: 420 }),
          length: fc.integer({ min: 0, max: 420 }),
          toEnd: fc.boolean(),
          rangeBytes: fc.integer({ min: 1, max: 90 }),
          inFlight: fc.integer({ min: 1, max: 9 }),
          seed: fc.integer({ min: 0, max: 100 }),
        }),
        async ({ size, start, length, toEnd, rangeBytes, inFlight, seed }) => {
          const store = new WatchedStore(size)
          store.pauses = (range) => (range.start * 31 + seed) % 4
          const range = { start, end: toEnd ? Number.POSITIVE_INFINITY : start + length }
          const bytes = await collect(readParallel(store, store.info, range, { rangeBytes, inFlight, signal }))
          expect(bytes.equals(store.bytes.slice(range.start, range.end))).toBe(true)
          expect(store.mostActive).toBeLessThanOrEqual(inFlight)
          expect(store.active).toBe(0)
        },
      ),
      { numRuns: 150 },
    )
  })

  it('keeps within its bound while nobody reads', async () => {
    const store = new WatchedStore(10_000)
    const reading = readParallel(store, store.info, { start: 0, end: 10_000 }, { rangeBytes: 100, inFlight: 3, signal })
    await reading.next()
    for (let n = 0; n < 200; n += 1) await nextTurn()
    expect(store.begun).toHaveLength(3)
    expect(store.delivered).toBe(300)
    await reading.return()
  })

  it('begins the next range as soon as one is consumed', async () => {
    const store = new WatchedStore(1000)
    const reading = readParallel(store, store.info, { start: 0, end: 1000 }, { rangeBytes: 7, inFlight: 2, signal })
    for (let n = 1; n <= 5; n += 1) {
      await reading.next()
      expect(store.begun).toHaveLength(n + 1)
    }
    await reading.return()
  })

  it('hands on the first range while it comes, before it is whole', async () => {
    const store = new WatchedStore(100)
    store.breaks = (range) => (range.start === 0 && store.delivered > 0 ? 'hang' : null)
    const reading = readParallel(store, store.info, { start: 0, end: 100 }, { rangeBytes: 50, inFlight: 1, signal })
    expect((await reading.next()).value).toHaveLength(7)
    await reading.return()
    expect(store.active).toBe(0)
  })

  it('asks again how much may be in flight', async () => {
    const store = new WatchedStore(1000)
    let inFlight = 1
    const options = { rangeBytes: 50, inFlight: () => inFlight, signal }
    const reading = readParallel(store, store.info, { start: 0, end: 1000 }, options)
    await reading.next()
    expect(store.begun).toHaveLength(1)
    inFlight = 5
    const rest = await collect(reading)
    expect(store.mostActive).toBe(5)
    expect(rest).toHaveLength(993)
    inFlight = 0
    expect(await collect(readParallel(store, store.info, { start: 0, end: 1000 }, options))).toHaveLength(1000)
  })

  it.each([
    ['no ranges', { ranged: false }, 1000],
    ['an unknown size', { size: null }, Number.POSITIVE_INFINITY],
    ['a short range', {}, 64],
  ])('is one read where there is %s', async (_, over, end) => {
    const store = new WatchedStore(1000, over)
    const bytes = await collect(
      readParallel(store, store.info, { start: 0, end }, { rangeBytes: 64, inFlight: 4, signal }),
    )
    expect(bytes.equals(store.bytes.slice(0, end))).toBe(true)
    expect(store.begun).toHaveLength(1)
  })

  it('tells an error after the bytes before it, and ends the others', async () => {
    const store = new WatchedStore(1000)
    store.breaks = (range) => (range.start === 200 ? 'error' : range.start > 200 ? 'hang' : null)
    store.pauses = (range) => (range.start < 200 ? 3 : 0)
    let bytes = 0
    const read = (async () => {
      const options = { rangeBytes: 100, inFlight: 4, signal }
      for await (const chunk of readParallel(store, store.info, { start: 0, end: 1000 }, options))
        bytes += chunk.byteLength
    })()
    await expect(read).rejects.toMatchObject({ code: 'SLUICE_NETWORK', message: 'broke in 200' })
    expect([bytes, store.active]).toEqual([200, 0])
  })

  it('does not take a range that is too short', async () => {
    const store = new WatchedStore(1000)
    store.breaks = (range) => (range.start === 100 ? 'short' : null)
    const read = collect(
      readParallel(store, store.info, { start: 0, end: 1000 }, { rangeBytes: 100, inFlight: 2, signal }),
    )
    await expect(read).rejects.toMatchObject({ code: 'SLUICE_SOURCE_SHORT', where: { byte: 107 } })
  })

  it.each(['break', 'throw'])('ends every request where the consumer leaves by %s', async (how) => {
    const store = new WatchedStore(1000)
    store.breaks = (range) => (range.start > 0 ? 'hang' : null)
    const read = (async () => {
      const options = { rangeBytes: 100, inFlight: 4, signal }
      for await (const chunk of readParallel(store, store.info, { start: 0, end: 1000 }, options)) {
        if (how === 'throw') throw new Error(`after ${chunk.byteLength}`)
        break
      }
    })()
    await (how === 'throw' ? expect(read).rejects.toThrow('after 7') : read)
    expect(store.begun).toHaveLength(4)
    expect(store.active).toBe(0)
  })

  it('ends by its signal, with its reason', async () => {
    const store = new WatchedStore(1000)
    store.breaks = () => 'hang'
    const stop = new AbortController()
    const reason = new Error('enough')
    setTimeout(() => stop.abort(reason), 10)
    const options = { rangeBytes: 100, inFlight: 4, signal: stop.signal }
    await expect(collect(readParallel(store, store.info, { start: 0, end: 1000 }, options))).rejects.toBe(reason)
    expect(store.active).toBe(0)
  })
})
