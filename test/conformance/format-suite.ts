import { describe, expect, it } from 'vitest'
import type { Batch, BatchForm, RowPlace, Value } from '../../src/core/batch.ts'
import { rowCount } from '../../src/core/batch.ts'
import type { Position } from '../../src/core/job.ts'
import type { FormatHead, FormatReader } from '../../src/core/ports.ts'

/** A file and what a reader is to make of it. */
export interface FormatSample {
  readonly name: string
  readonly bytes: Uint8Array
  readonly columns: readonly string[]
  readonly rows: readonly (readonly Value[])[]
}

export interface FormatCase {
  /** A new reader with default options, and rows of up to 1 MiB. */
  readonly open: () => FormatReader
  /** Small ones, and one at least that makes several batches. */
  readonly samples: readonly FormatSample[]
  /** Whether a reader's columns come from the data; false: rows tell them batch by batch. */
  readonly named: boolean
}

/** What every format reader keeps to, whichever format it is. Batches of a form other than rows are judged by their counts and positions. */
export function describeFormat(name: string, { open, samples, named }: FormatCase): void {
  describe(`format ${name}`, () => {
    describe.each(samples)('$name', (sample) => {
      const { bytes } = sample

      it('gives its rows, in order, with places', async () => {
        const { head, batches } = await readWhole(open(), bytes, { form: 'rows', cut: bytes.byteLength })
        if (named) expect(head.columns.map((column) => column.name)).toEqual(sample.columns)
        expect(rowsOf(batches, sample.columns)).toEqual(sample.rows)
        const places = placesOf(batches)
        expect(places.map((place) => place.row)).toEqual(sample.rows.map((_, i) => i + 1))
        expect(places.every((place, i) => i === 0 || (places[i - 1]?.byte ?? 0) < place.byte)).toBe(true)
        expect(places.every((place, i) => i === 0 || (places[i - 1]?.line ?? 0) <= place.line)).toBe(true)
      })

      it('gives the same however its chunks are cut', async () => {
        for (const form of open().forms) {
          const whole = await readWhole(open(), bytes, { form, cut: bytes.byteLength })
          for (const cut of bytes.byteLength > 10_000 ? [4093, 65_536, 300_001] : [1, 2, 3, 5, 7, 64]) {
            const pieces = await readWhole(open(), bytes, { form, cut })
            expect(pieces.head).toEqual(whole.head)
            expect(pieces.batches.at(-1)?.end).toEqual(whole.batches.at(-1)?.end)
            expect(total(pieces.batches)).toBe(total(whole.batches))
            expect(rowsOf(pieces.batches, sample.columns)).toEqual(rowsOf(whole.batches, sample.columns))
            expect(placesOf(pieces.batches)).toEqual(placesOf(whole.batches))
          }
        }
      })

      it('counts positions on from batch to batch', async () => {
        for (const form of open().forms) {
          const { head, batches } = await readWhole(open(), bytes, { form, cut: 65_536 })
          let at = head.first
          for (const batch of batches) {
            expect(batch.form).toBe(form)
            expect(batch.start.row).toBe(at.row)
            expect(batch.start.byte).toBeGreaterThanOrEqual(at.byte)
            expect(batch.start.line).toBeGreaterThanOrEqual(at.line)
            expect(batch.end.row).toBe(batch.start.row + rowCount(batch))
            expect(batch.end.byte).toBeGreaterThan(batch.start.byte)
            expect(batch.mayEnd).toBe(true)
            at = batch.end
          }
          expect(at.row).toBe(sample.rows.length)
        }
      })

      it('goes on from the end of any batch', async () => {
        for (const form of open().forms) {
          const { head, batches } = await readWhole(open(), bytes, { form, cut: 65_536 })
          const wanted = rowsOf(batches, sample.columns)
          for (const [i, batch] of batches.entries()) {
            const rest = await readFrom(open(), bytes, { form, cut: 65_536, head: copied(head), from: batch.end })
            expect(rest.at(-1)?.end ?? batch.end).toEqual(batches.at(-1)?.end)
            expect(total(rest)).toBe(total(batches.slice(i + 1)))
            if (form === 'rows')
              expect([...rowsOf(batches.slice(0, i + 1), sample.columns), ...rowsOf(rest, sample.columns)]).toEqual(
                wanted,
              )
          }
        }
      })
    })

    it('no bytes: no rows, and a warning', async () => {
      const warnings: string[] = []
      for (const form of open().forms) {
        const { batches } = await readWhole(open(), new Uint8Array(0), {
          form,
          cut: 1,
          warn: (message) => warnings.push(message),
        })
        expect(batches).toEqual([])
      }
      expect(warnings.length).toBeGreaterThan(0)
      expect(warnings[0]).toContain('suite:file')
    })

    it('closes its chunks when the consumer leaves early', async () => {
      const sample = longest(samples)
      for (const form of open().forms) {
        const head = await open().head(cutUp(sample.bytes, 4096), place())
        const chunks = watched(fromPosition(sample.bytes, head, head.first), 4096)
        for await (const _ of open().read(chunks.iterable, head, { ...place(), form, from: head.first })) break
        expect(chunks.closed()).toBe(true)
      }
    })

    it('closes its chunks when it fails', async () => {
      const failing = (async function* (): AsyncGenerator<Uint8Array> {
        yield longest(samples).bytes.subarray(0, 100)
        throw new Error('the store is gone')
      })()
      const head = await open().head(cutUp(longest(samples).bytes, 4096), place())
      const read = drain(open().read(failing, head, { ...place(), form: 'rows', from: head.first }))
      await expect(read).rejects.toThrow('the store is gone')
    })

    it('ends with the reason of its signal, also while it waits for bytes', async () => {
      const sample = longest(samples)
      const head = await open().head(cutUp(sample.bytes, 4096), place())
      const before = AbortSignal.abort(new Error('not even begun'))
      const never = open().read(cutUp(sample.bytes, 4096), head, {
        ...place(),
        signal: before,
        form: 'rows',
        from: head.first,
      })
      await expect(drain(never)).rejects.toThrow('not even begun')
      const stop = new AbortController()
      const read = drain(
        open().read(silent(), head, { ...place(), signal: stop.signal, form: 'rows', from: head.first }),
      )
      setImmediate(() => stop.abort(new Error('enough')))
      await expect(read).rejects.toThrow('enough')
      const inHead = new AbortController()
      const looking = open().head(silent(), { ...place(), signal: inHead.signal })
      setImmediate(() => inHead.abort(new Error('enough')))
      await expect(looking).rejects.toThrow('enough')
    })

    it('reads no more than it needs for the head', async () => {
      const sample = longest(samples)
      let given = 0
      const counted = (async function* (): AsyncGenerator<Uint8Array> {
        for await (const chunk of cutUp(sample.bytes, 8192)) {
          given += chunk.byteLength
          yield chunk
        }
      })()
      await open().head(counted, place())
      expect(given).toBeLessThanOrEqual(65_536)
    })
  })
}

interface Reading {
  readonly form: BatchForm
  /** Bytes of a chunk. */
  readonly cut: number
  readonly warn?: (message: string) => void
}

function place(): { url: string; signal: AbortSignal; warn: (message: string) => void } {
  return { url: 'suite:file', signal: new AbortController().signal, warn: () => undefined }
}

async function readWhole(
  reader: FormatReader,
  bytes: Uint8Array,
  o: Reading,
): Promise<{ head: FormatHead; batches: Batch[] }> {
  const head = await reader.head(cutUp(bytes, o.cut), { ...place(), ...(o.warn === undefined ? {} : { warn: o.warn }) })
  return { head, batches: await readFrom(reader, bytes, { ...o, head, from: head.first }) }
}

async function readFrom(
  reader: FormatReader,
  bytes: Uint8Array,
  o: Reading & { head: FormatHead; from: Position },
): Promise<Batch[]> {
  const chunks = cutUp(fromPosition(bytes, o.head, o.from), o.cut)
  const warn = o.warn ?? (() => undefined)
  return drain(reader.read(chunks, o.head, { ...place(), warn, form: o.form, from: o.from }))
}

/** What a reader gets that is to begin at a position: all of it where positions are no offsets. */
function fromPosition(bytes: Uint8Array, head: FormatHead, from: Position): Uint8Array {
  const { state } = head
  const seekable = !(typeof state === 'object' && state !== null && 'seekable' in state && state['seekable'] === false)
  return seekable ? bytes.subarray(from.byte) : bytes
}

/** As it is after a stay in the state folder. */
function copied(head: FormatHead): FormatHead {
  return JSON.parse(JSON.stringify(head)) as FormatHead
}

async function* cutUp(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += Math.max(1, size)) yield bytes.slice(at, at + Math.max(1, size))
}

async function* silent(): AsyncGenerator<Uint8Array> {
  await new Promise(() => undefined)
  yield new Uint8Array(0)
}

function watched(bytes: Uint8Array, size: number): { iterable: AsyncIterable<Uint8Array>; closed: () => boolean } {
  let closed = false
  const iterable = (async function* (): AsyncGenerator<Uint8Array> {
    try {
      yield* cutUp(bytes, size)
    } finally {
      closed = true
    }
  })()
  return { iterable, closed: () => closed }
}

async function drain(batches: AsyncIterable<Batch>): Promise<Batch[]> {
  const all: Batch[] = []
  for await (const batch of batches) all.push(batch)
  return all
}

const total = (batches: readonly Batch[]): number => batches.reduce((sum, batch) => sum + rowCount(batch), 0)

/** Values by the sample's columns, whatever columns a batch has. */
function rowsOf(batches: readonly Batch[], columns: readonly string[]): Value[][] {
  return batches.flatMap((batch) => {
    if (batch.form !== 'rows') return []
    const order = columns.map((name) => batch.columns.indexOf(name))
    return batch.rows.map((row) => order.map((j) => (j < 0 ? undefined : row[j])))
  })
}

const placesOf = (batches: readonly Batch[]): RowPlace[] =>
  batches.flatMap((batch) => (batch.form === 'rows' ? batch.places : []))

function longest(samples: readonly FormatSample[]): FormatSample {
  const [first, ...others] = samples
  if (first === undefined) throw new Error('the suite wants samples')
  return others.reduce((a, b) => (b.bytes.byteLength > a.bytes.byteLength ? b : a), first)
}
