import { createHash, hash as hashOnce } from 'node:crypto'
import type { Value } from '../core/batch.ts'
import type { Partition } from '../core/job.ts'
import type { Source } from '../core/ports.ts'
import { redactUrl } from '../core/redact.ts'
import type { Surroundings } from './endpoints.ts'
import type { VerifyResult, VerifySide } from './requests.ts'
import { displayText, mapColumns } from './rows.ts'
import { mapped, openSource } from './verify-ends.ts'
import type { End } from './verify-ends.ts'

type Difference = VerifyResult['differences'][number]

/** Rows of a side whose hashes are kept to find those that the other lacks: about 100 bytes each. */
const MOST_KEPT_ROWS = 1_000_000
/** How much of a row is shown. */
const LONGEST_SHOWN = 200

interface FileDigest {
  readonly hash: string
  readonly bytes: number
}

/** Bytes of both sides, file by file; where they differ, from which on. */
export async function compareBytes(
  from: End,
  to: End,
  o: { signal: AbortSignal; limit: number },
): Promise<VerifyResult> {
  const { signal, limit } = o
  const [source, sink] = [await hashBytes(from, signal), await hashBytes(to, signal)]
  const single = source.files.size === 1 && sink.files.size === 1
  const pairs: { name: string; ids: readonly [string, string] }[] = []
  const lacking: Difference[] = []
  if (single) {
    const [[a = ''] = [], [b = ''] = []] = [[...source.files.keys()], [...sink.files.keys()]]
    if (source.side.hash !== sink.side.hash) pairs.push({ name: '', ids: [a, b] })
  } else
    for (const name of new Set([...source.files.keys(), ...sink.files.keys()])) {
      const [a, b] = [source.files.get(name), sink.files.get(name)]
      if (a === undefined) lacking.push({ kind: 'extra', text: name })
      else if (b === undefined) lacking.push({ kind: 'missing', text: name })
      else if (a.hash !== b.hash) pairs.push({ name, ids: [name, name] })
    }
  const different: Difference[] = []
  for (const { name, ids } of pairs.slice(0, limit)) {
    const [a, b] = [source.files.get(ids[0])?.bytes ?? 0, sink.files.get(ids[1])?.bytes ?? 0]
    const at = await firstByteApart([from, to], ids, signal)
    const where =
      at === null ? '' : at === Math.min(a, b) ? `the first ${at} bytes are the same; ` : `from byte ${at} on; `
    different.push({ kind: 'different', text: `${name === '' ? '' : `${name}: `}${where}${a} bytes and ${b} bytes` })
  }
  const same = pairs.length === 0 && lacking.length === 0
  return { same, source: source.side, sink: sink.side, differences: [...different, ...lacking].slice(0, limit) }
}

/** SHA-256 of each file, and of the whole. */
async function hashBytes(end: End, signal: AbortSignal): Promise<{ side: VerifySide; files: Map<string, FileDigest> }> {
  const files = new Map<string, FileDigest>()
  await withSource({ ...end, request: { ...end.request, raw: true } }, async (source) => {
    for (const partition of await source.plan({ signal })) {
      const hash = createHash('sha256')
      let bytes = 0
      for await (const chunk of bytesOf(source, partition, signal)) {
        hash.update(chunk)
        bytes += chunk.byteLength
      }
      files.set(partition.id, { hash: hash.digest('hex'), bytes })
    }
  })
  const bytes = [...files.values()].reduce((sum, file) => sum + file.bytes, 0)
  const hashes = [...files].map(([name, { hash }]) => [name, hash])
  const whole =
    files.size === 1
      ? (hashes[0]?.[1] ?? '')
      : createHash('sha256').update(JSON.stringify(hashes.toSorted())).digest('hex')
  return { side: { url: redactUrl(end.url), rows: null, hash: whole, bytes }, files }
}

/** Offset of the first byte in which two files differ, by reading both once more; null where one can't be read twice. */
function firstByteApart(
  ends: readonly [End, End],
  ids: readonly [string, string],
  signal: AbortSignal,
): Promise<number | null> {
  const raw = (end: End): End => ({ ...end, request: { ...end.request, raw: true } })
  return withSource(raw(ends[0]), (a) =>
    withSource(raw(ends[1]), async (b) => {
      const one = (await a.plan({ signal })).find(({ id }) => id === ids[0])
      const other = (await b.plan({ signal })).find(({ id }) => id === ids[1])
      if (!a.replayable || !b.replayable || one === undefined || other === undefined) return null
      const right = bytesOf(b, other, signal)
      try {
        return await apart(bytesOf(a, one, signal), right)
      } finally {
        // Stopped in mid-file, it has the file open.
        await right.return(undefined)
      }
    }),
  )
}

/** Offset of the first byte in which two streams differ; that of the end where one is the beginning of the other. */
async function apart(one: AsyncIterable<Uint8Array>, other: AsyncIterator<Uint8Array>): Promise<number> {
  let at = 0
  let rest: Buffer = Buffer.alloc(0)
  for await (const chunk of one) {
    let left: Buffer = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    while (left.length > 0) {
      if (rest.length === 0) {
        const next = await other.next()
        if (next.done === true) return at
        rest = Buffer.from(next.value.buffer, next.value.byteOffset, next.value.byteLength)
      }
      const length = Math.min(left.length, rest.length)
      if (!left.subarray(0, length).equals(rest.subarray(0, length))) return at + commonBytes(left, rest)
      at += length
      left = left.subarray(length)
      rest = rest.subarray(length)
    }
  }
  return at
}

function commonBytes(a: Buffer, b: Buffer): number {
  let at = 0
  while (at < a.length && a[at] === b[at]) at += 1
  return at
}

async function* bytesOf(source: Source, partition: Partition, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  for await (const batch of source.read(partition, { form: 'bytes', signal }))
    if (batch.form === 'bytes') yield batch.bytes
}

async function withSource<T>(end: End, use: (source: Source) => Promise<T>): Promise<T> {
  const source = await openSource(end)
  try {
    return await use(source)
  } finally {
    await source.close()
  }
}

interface HashedRows {
  readonly hashes: BigUint64Array
  /** For people: where the row of that index is, and what it says. */
  readonly text: (index: number) => string
}

interface RowsSide {
  readonly end: End
  /** What is said of its columns. */
  readonly options: Surroundings['options']
}

/** Rows of both sides, in any order: counts and the sum of the rows' hashes; where they differ, which rows one side lacks. */
export async function compareFiles(
  from: End,
  to: End,
  o: { around: Surroundings; limit: number },
): Promise<VerifyResult> {
  const { signal, options } = o.around
  const sides: readonly [RowsSide, RowsSide] = [
    { end: from, options },
    { end: to, options: {} },
  ]
  const [a, b] = [await hashRows(sides[0], signal), await hashRows(sides[1], signal)]
  const same = a.rows === b.rows && a.hash === b.hash
  const counts =
    a.rows === b.rows ? `${a.rows} rows on both sides, with other values` : `${a.rows} rows and ${b.rows} rows`
  const isNamed = !same && a.replayable && b.replayable && Math.max(a.rows, b.rows) <= MOST_KEPT_ROWS
  const rows = isNamed ? await rowsApart(sides, { signal, limit: Math.max(0, o.limit - 1) }) : []
  return {
    same,
    source: { url: redactUrl(from.url), rows: a.rows, hash: a.hash, bytes: null },
    sink: { url: redactUrl(to.url), rows: b.rows, hash: b.hash, bytes: null },
    differences: same ? [] : [{ kind: 'different' as const, text: counts }, ...rows],
  }
}

async function hashRows(
  side: RowsSide,
  signal: AbortSignal,
): Promise<{ rows: number; hash: string; replayable: boolean }> {
  let [rows, sum, replayable] = [0, 0n, true]
  await withSource(side.end, async (source) => {
    for await (const { hashes } of hashedRows(source, side, signal)) {
      for (const hash of hashes) sum += hash
      sum &= 0xffff_ffff_ffff_ffffn
      rows += hashes.length
    }
    replayable = source.replayable
  })
  return { rows, hash: sum.toString(16).padStart(16, '0'), replayable }
}

/** Rows that one side has more often than the other: of the source first. */
async function rowsApart(
  [from, to]: readonly [RowsSide, RowsSide],
  o: { signal: AbortSignal; limit: number },
): Promise<readonly Difference[]> {
  const counts = new Map<bigint, number>()
  const count = (hash: bigint, by: number): number => {
    const now = (counts.get(hash) ?? 0) + by
    counts.set(hash, now)
    return now
  }
  const missing: Difference[] = []
  const extra: Difference[] = []
  await withSource(to.end, async (source) => {
    for await (const { hashes } of hashedRows(source, to, o.signal)) for (const hash of hashes) count(hash, 1)
  })
  await withSource(from.end, async (source) => {
    for await (const { hashes, text } of hashedRows(source, from, o.signal))
      for (const [i, hash] of hashes.entries())
        if (count(hash, -1) < 0 && missing.length < o.limit) missing.push({ kind: 'missing', text: text(i) })
  })
  await withSource(to.end, async (source) => {
    for await (const { hashes, text } of hashedRows(source, to, o.signal)) {
      if (extra.length >= o.limit) break
      for (const [i, hash] of hashes.entries()) {
        if (extra.length >= o.limit) break
        if ((counts.get(hash) ?? 0) <= 0) continue
        count(hash, -1)
        extra.push({ kind: 'extra', text: text(i) })
      }
    }
  })
  // Both kinds are shown where there are both.
  const shown = Math.max(Math.ceil(o.limit / 2), o.limit - extra.length)
  return [...missing.slice(0, shown), ...extra].slice(0, o.limit)
}

async function* hashedRows(source: Source, side: RowsSide, signal: AbortSignal): AsyncGenerator<HashedRows> {
  const mapping = mapColumns(await source.describe({ signal }), side.options, side.end.url)
  for await (const { url, batch } of mapped(source, mapping, { form: 'rows', signal })) {
    if (batch.form !== 'rows') continue
    const order = batch.columns
      .map((name, i) => ({ name, i, quoted: JSON.stringify(name) }))
      .toSorted((x, y) => (x.name < y.name ? -1 : 1))
    yield {
      hashes: BigUint64Array.from(batch.rows, (row) => hashRow(order, row)),
      text: (index) => {
        const row = batch.rows[index] ?? []
        const values = Object.fromEntries(batch.columns.map((name, j) => [name, displayText(row[j])]))
        const text = JSON.stringify(values)
        const shown = text.length <= LONGEST_SHOWN ? text : `${text.slice(0, LONGEST_SHOWN)}…`
        return `row ${batch.places[index]?.row ?? 0} of ${redactUrl(url)}: ${shown}`
      },
    }
  }
}

/** A missing value and NULL are the same here: CSV can't tell them apart. */
function hashRow(order: readonly { quoted: string; i: number }[], row: readonly Value[]): bigint {
  let present = ''
  for (const { quoted, i } of order) {
    const text = displayText(row[i])
    if (text !== null) present += `${quoted}:${JSON.stringify(text)},`
  }
  return hashOnce('sha1', present, 'buffer').readBigUInt64BE()
}
