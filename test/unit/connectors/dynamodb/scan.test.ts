import { mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import type { DynamoCalls } from '../../../../src/connectors/dynamodb/answer.ts'
import { AttributeTypes, itemsToRows } from '../../../../src/connectors/dynamodb/item/item-rows.ts'
import { ReadBudget, TableScan } from '../../../../src/connectors/dynamodb/scan.ts'
import { ScanKeys } from '../../../../src/connectors/dynamodb/scan-keys.ts'
import { segmentCount } from '../../../../src/connectors/dynamodb/source.ts'

const o = { signal: new AbortController().signal }
const PAGES = 5

interface ScanBody {
  readonly Segment: number
  readonly ExclusiveStartKey?: { readonly id: { readonly S: string } }
  readonly Limit?: number
}

/** A table whose segments have five pages of two items each, which are called `segment/page/item`. */
function table(units: number | null = null): DynamoCalls & { readonly asked: ScanBody[] } {
  const asked: ScanBody[] = []
  return {
    asked,
    call: (_, body) => {
      const scan = body as ScanBody
      asked.push(scan)
      const page = scan.ExclusiveStartKey === undefined ? 0 : Number(scan.ExclusiveStartKey.id.S.split('/')[1]) + 1
      const items = [0, 1].map((i) => ({ id: { S: `${scan.Segment}/${page}/${i}` } }))
      return Promise.resolve({
        Items: items,
        ...(page === PAGES - 1 ? {} : { LastEvaluatedKey: items[1] }),
        ...(units === null ? {} : { ConsumedCapacity: { CapacityUnits: units } }),
      })
    },
  }
}

const idsOf = (items: readonly object[]): string[] => items.map((item) => (item as { id: { S: string } }).id.S)

describe('TableScan', () => {
  it('gives each item of each segment once, segment after segment, and asks for no page twice', async () => {
    const calls = table()
    const scan = new TableScan(calls, { table: 'Table', segments: 12, budget: null })
    const ids: string[] = []
    for await (const page of scan.pages(o)) ids.push(...idsOf(page.items))
    expect(ids).toEqual(
      Array.from({ length: 12 }, (_, s) =>
        Array.from({ length: 10 }, (__, i) => `${s}/${Math.floor(i / 2)}/${i % 2}`),
      ).flat(),
    )
    expect(calls.asked).toHaveLength(12 * PAGES)
    expect(calls.asked.every((body) => body.Limit === undefined)).toBe(true)
  })

  it('reads ahead no further than its bound', async () => {
    const calls = table()
    const scan = new TableScan(calls, { table: 'Table', segments: 100, budget: null })
    const pages = scan.segment(0, null, o)
    await pages.next()
    await new Promise((resolve) => setTimeout(resolve, 20))
    // The page in hand and two more, and two of each of the next three segments.
    expect(calls.asked.length).toBe(3 + 3 * 2)
    expect(Math.max(...calls.asked.map((body) => body.Segment))).toBe(3)
    await pages.return()
    scan.close()
  })

  it('shares segments between readers: none is read twice', async () => {
    const calls = table()
    const scan = new TableScan(calls, { table: 'Table', segments: 16, budget: null })
    const seen: string[] = []
    let next = 0
    const reader = async (): Promise<void> => {
      for (let segment = next++; segment < 16; segment = next++)
        for await (const page of scan.segment(segment, null, o)) seen.push(...idsOf(page.items))
    }
    await Promise.all([reader(), reader(), reader()])
    expect(new Set(seen).size).toBe(160)
    expect(seen).toHaveLength(160)
    expect(calls.asked).toHaveLength(16 * PAGES)
  })

  it('goes on behind a key', async () => {
    const scan = new TableScan(table(), { table: 'Table', segments: 2, budget: null })
    const ids: string[] = []
    for await (const page of scan.segment(1, { id: { S: '1/2/1' } }, o)) ids.push(...idsOf(page.items))
    expect(ids).toEqual(['1/3/0', '1/3/1', '1/4/0', '1/4/1'])
  })

  it('ends by its signal, and gives on what the server says', async () => {
    const stop = new AbortController()
    const hanging: DynamoCalls = {
      call: (_, __, { signal }) =>
        new Promise((___, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error))),
    }
    const waiting = new TableScan(hanging, { table: 'Table', segments: 1, budget: null })
      .segment(0, null, { signal: stop.signal })
      .next()
    setImmediate(() => stop.abort(new Error('enough')))
    await expect(waiting).rejects.toThrow('enough')
    const failing: DynamoCalls = { call: () => Promise.reject(new Error('refused')) }
    await expect(
      new TableScan(failing, { table: 'Table', segments: 1, budget: null }).segment(0, null, o).next(),
    ).rejects.toThrow('refused')
  })

  it.each([null, {}])('takes %j for the end of a segment, as it is meant', async (LastEvaluatedKey) => {
    const calls = { call: () => Promise.resolve({ Items: [{ id: { S: 'a' } }], LastEvaluatedKey }) }
    const pages = new TableScan(calls, { table: 'Table', segments: 1, budget: null }).pages(o)
    expect((await pages.next()).value).toMatchObject({ next: null })
    expect(await pages.next()).toMatchObject({ done: true })
  })

  it('tells a server that gives all items for each segment', async () => {
    const calls = table()
    const all: DynamoCalls = {
      call: (operation, body, abortable) => calls.call(operation, { ...body, Segment: 0 }, abortable),
    }
    const scan = new TableScan(all, { table: 'Table', segments: 16, budget: null })
    const read = async (): Promise<void> => {
      for await (const page of scan.pages(o)) expect(page.items).toHaveLength(2)
    }
    await expect(read()).rejects.toMatchObject({ code: 'SLUICE_PROTOCOL' })
  })

  it('keeps to its read units by what the server counts', async () => {
    const calls = table(20)
    const budget = new ReadBudget(400)
    const scan = new TableScan(calls, { table: 'Table', segments: 2, budget })
    const began = performance.now()
    for await (const page of scan.pages(o)) expect(page.items).toHaveLength(2)
    const seconds = (performance.now() - began) / 1000
    expect(budget.units).toBe(2 * PAGES * 20)
    // The last page is not waited for.
    expect((budget.units - 20) / seconds).toBeLessThanOrEqual(400)
    expect(calls.asked.at(-1)?.Limit).toBe(40)
  })
})

describe('itemsToRows', () => {
  it('drops no attribute, whenever it comes up', () => {
    const { columns, rows } = itemsToRows(
      [{ id: { S: 'a' } }, { late: { N: '1' }, id: { S: 'b' } }, { id: { S: 'c' } }],
      ['id', 'x'],
    )
    expect(columns).toEqual(['id', 'x', 'late'])
    expect(rows).toEqual([
      ['a', undefined, undefined],
      ['b', undefined, { kind: 'number', text: '1' }],
      ['c', undefined, undefined],
    ])
  })

  it('tells types of attributes that have one', () => {
    const types = new AttributeTypes(['id'])
    types.add([
      { id: { S: 'a' }, n: { N: '1' }, mixed: { S: 'x' } },
      { id: { S: 'b' }, n: { NULL: true }, mixed: { N: '1' } },
    ])
    expect(types.columns()).toEqual([
      { name: 'id', type: 'string', nativeType: 'S', nativeTo: 'dynamodb', nullable: true },
      { name: 'n', type: 'number', nativeType: 'N|NULL', nativeTo: 'dynamodb', nullable: true },
      { name: 'mixed', nativeType: 'N|S', nativeTo: 'dynamodb', nullable: true },
    ])
  })

  it('cuts a table into segments of some size, within bounds', () => {
    expect([null, 0, 5_000_000_000, 2 ** 50].map(segmentCount)).toEqual([16, 16, 75, 100_000])
  })
})

describe('ScanKeys', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-scan-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it('finds the key behind a row in another process, and says so where it cannot', () => {
    const keys = new ScanKeys(folder, 'one')
    keys.add(0, 10, { id: { S: 'a,1' } })
    keys.add(1, 10, { id: { S: 'b' } })
    keys.add(1, 100, { id: { S: 'c' } })
    const later = new ScanKeys(folder, 'one')
    expect(later.find(1, 10)).toEqual({ id: { S: 'b' } })
    expect(later.find(1, 100)).toEqual({ id: { S: 'c' } })
    expect(() => later.find(1, 1)).toThrow(expect.objectContaining({ code: 'SLUICE_STATE' }) as Error)
    expect(() => new ScanKeys(folder, 'two').find(0, 10)).toThrow(/--new-job|not known/)
  })

  it('clears away what was forgotten', () => {
    const old = join(folder, 'scan-old.jsonl')
    writeFileSync(old, '')
    utimesSync(old, new Date(0), new Date(0))
    new ScanKeys(folder, 'three').add(0, 1, { id: { S: 'x' } })
    expect(readdirSync(folder)).not.toContain('scan-old.jsonl')
  })
})
