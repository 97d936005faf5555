import { createHash } from 'node:crypto'
import type { Value } from '../../core/batch.ts'
import { SluiceError } from '../../core/errors.ts'
import type { Schema } from '../../core/schema.ts'
import type { ComparedBatch, Comparison, SinkRequest } from '../connector.ts'
import { type Answer } from './answer.ts'
import { canonicalRow, SetPaths } from './item/canonical.ts'
import { openDynamoClient } from './client.ts'
import { AttributeTypes, itemsToRows, type KnownTypes } from './item/item-rows.ts'
import { ItemShapes } from './item/item-shapes.ts'
import { readBudget, segmentCount } from './source.ts'
import { TableScan } from './scan.ts'
import { describeTable } from './table.ts'
import { keysOf } from './table-info.ts'
import { findDynamoTarget } from './url.ts'

/** Items whose keys are kept in mind, some 150 bytes each, so that differences have names and rows of one key are told. */
const MOST_KEYS = 1_000_000
const MASK = 0xffff_ffff_ffff_ffffn

interface CompareRows {
  readonly schema: Schema
  readonly batches: AsyncIterable<ComparedBatch>
  readonly limit: number
}

/**
 * Compares rows with a table by a strongly consistent Scan: the table is read first, then the rows, and each row is hashed in one canonical form (order of attributes and
 * of sets' members means nothing, numbers are compared by value). What a format cannot hold is no difference: types in CSV, sets and binary in
 * JSON, NULL and a missing attribute. Rows with a key that comes again later count once, as a load leaves them; where the table has more than a
 * million items they are counted as they are, and differences have no names.
 */
export async function compareWithTable(request: SinkRequest, rows: CompareRows): Promise<Comparison> {
  const target = await findDynamoTarget(request.url, request)
  const client = openDynamoClient(request, target)
  const { signal } = request
  try {
    const table = await describeTable(client, target.table, { signal })
    const keys = keysOf(table).map((key) => key.name)
    const scan = new TableScan(client, {
      table: target.table,
      segments: segmentCount(table.bytes),
      budget: readBudget(request),
    })
    const sides = new Sides(keys)
    try {
      for await (const page of scan.pages({ signal })) sides.addItems(page.items)
    } finally {
      scan.close()
    }
    await sides.addRows(rows.batches)
    return sides.result(rows.limit)
  } catch (error) {
    throw error instanceof SluiceError && error.where.row === undefined ? error.at({ url: target.url }) : error
  } finally {
    await client.close()
  }
}

interface Known {
  readonly hash: bigint
  /** By what types text without types is read; null: by those of the whole table. */
  readonly types: KnownTypes | null
  /** Hash of the latest row with this key; null where none came. */
  row: bigint | null
}

/** Both sides as far as they were read. */
class Sides {
  readonly #keys: readonly string[]
  readonly #types: AttributeTypes
  readonly #shapes: ItemShapes
  readonly #sets = new SetPaths()
  /** By key; null once there are too many. */
  #known: Map<string, Known> | null = new Map()
  /** Rows that the table has no item for. */
  readonly #missing = new Map<string, bigint>()
  #items = { rows: 0, sum: 0n }
  #rows = { rows: 0, sum: 0n }

  constructor(keys: readonly string[]) {
    this.#keys = keys
    this.#types = new AttributeTypes(keys)
    this.#shapes = new ItemShapes(this.#types)
  }

  addItems(items: readonly Answer[]): void {
    this.#types.add(items)
    const { columns, rows } = itemsToRows(items, this.#keys)
    for (const [i, row] of rows.entries()) {
      const { hash, key } = this.#digest(columns, row, { own: true, types: this.#types })
      this.#items = { rows: this.#items.rows + 1, sum: (this.#items.sum + hash) & MASK }
      this.#known?.set(key, { hash, types: this.#shapes.of(items[i] ?? {}), row: null })
    }
    if ((this.#known?.size ?? 0) > MOST_KEYS) this.#known = null
  }

  async addRows(batches: AsyncIterable<ComparedBatch>): Promise<void> {
    for await (const { batch } of batches) {
      if (batch.form !== 'rows') throw new SluiceError('SLUICE_INTERNAL', `rows to compare came as ${batch.form}`)
      for (const row of batch.rows) this.#addRow(batch.columns, row)
    }
  }

  result(limit: number): Comparison {
    const differences: { kind: 'missing' | 'extra' | 'different'; text: string }[] = []
    for (const key of this.#missing.keys()) differences.push({ kind: 'missing', text: key })
    for (const [text, { hash, row }] of this.#known ?? []) {
      if (differences.length >= limit * 2) break
      if (row === null) differences.push({ kind: 'extra', text })
      else if (row !== hash) differences.push({ kind: 'different', text })
    }
    const side = (one: { rows: number; sum: bigint }): { rows: number; hash: string } => ({
      rows: one.rows,
      hash: one.sum.toString(16).padStart(16, '0'),
    })
    return { source: side(this.#rows), sink: side(this.#items), differences: differences.slice(0, limit) }
  }

  #addRow(columns: readonly string[], row: readonly Value[]): void {
    let { hash, key } = this.#digest(columns, row, { own: false, types: this.#types })
    const known = this.#known?.get(key)
    const types = known?.types ?? null
    // Its key's types are those of the table; others may be the item's alone.
    if (known !== undefined && known.hash !== hash && types !== null)
      ({ hash, key } = this.#digest(columns, row, { own: false, types }))
    const before = this.#known === null ? undefined : known === undefined ? this.#missing.get(key) : known.row
    this.#rows =
      before === undefined || before === null
        ? { rows: this.#rows.rows + 1, sum: (this.#rows.sum + hash) & MASK }
        : { rows: this.#rows.rows, sum: (this.#rows.sum + hash - before) & MASK }
    if (known !== undefined) known.row = hash
    else if (this.#known !== null && this.#missing.size < MOST_KEYS) this.#missing.set(key, hash)
  }

  #digest(
    columns: readonly string[],
    row: readonly Value[],
    o: { readonly own: boolean; readonly types: KnownTypes },
  ): { hash: bigint; key: string } {
    const entries = canonicalRow(columns, row, { ...o, sets: this.#sets })
    const hash = createHash('sha1').update(JSON.stringify(entries)).digest().readBigUInt64BE()
    const texts = new Map(entries)
    return { hash, key: this.#keys.map((name) => `${name}=${texts.get(name) ?? ''}`).join(', ') }
  }
}
