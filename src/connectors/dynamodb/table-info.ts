import type { Json } from '../../core/job.ts'
import { type Answer, answerOf, listOf, numberOf, textOf } from './answer.ts'

/** What may be a key. */
export type KeyType = 'S' | 'N' | 'B'

export interface KeyAttribute {
  readonly name: string
  readonly type: KeyType
}

/** Units a second. */
export interface Throughput {
  readonly readUnits: number | null
  readonly writeUnits: number | null
}

export interface TableIndex {
  readonly name: string
  readonly kind: 'global' | 'local'
  readonly status: string | null
  readonly keys: readonly KeyAttribute[]
}

/** A table as DescribeTable tells of it. */
export interface TableInfo {
  readonly name: string
  readonly arn: string | null
  /** ACTIVE, CREATING, UPDATING, DELETING and rarer ones. */
  readonly status: string
  readonly partitionKey: KeyAttribute
  readonly sortKey: KeyAttribute | null
  readonly indexes: readonly TableIndex[]
  readonly billing: 'on-demand' | 'provisioned'
  /** Of a provisioned table. */
  readonly provisioned: Throughput | null
  /** Upper bounds of an on-demand table, where it has some. */
  readonly onDemandLimit: Throughput | null
  /** What the table bears at once; null where the server does not say. */
  readonly warm: Throughput | null
  /** Items and bytes as of the server's last count, about six hours old at most. */
  readonly items: number | null
  readonly bytes: number | null
  readonly stream: boolean
  readonly deletionProtection: boolean
}

/** Keys of a table, the partition key first. */
export function keysOf(table: Pick<TableInfo, 'partitionKey' | 'sortKey'>): readonly KeyAttribute[] {
  return table.sortKey === null ? [table.partitionKey] : [table.partitionKey, table.sortKey]
}

/** An attribute that is a key of an index, and none of the table's: an item may do without it, but not have it otherwise. */
export interface IndexKey extends KeyAttribute {
  /** Of the index; one of them where there are several. */
  readonly index: string
  /** AWS, "Service, account, and table quotas": 2048 of a partition key, 1024 of a sort key; the least where it is both. */
  readonly mostBytes: number
}

/** Keys of indexes that are no keys of the table, each once. */
export function indexKeysOf(table: Pick<TableInfo, 'partitionKey' | 'sortKey' | 'indexes'>): readonly IndexKey[] {
  const own = new Set(keysOf(table).map((key) => key.name))
  const found = new Map<string, IndexKey>()
  for (const { name: index, keys } of table.indexes)
    for (const [i, key] of keys.entries()) {
      const mostBytes = i === 0 ? 2048 : 1024
      const before = found.get(key.name)
      if (own.has(key.name)) continue
      if (before === undefined || before.mostBytes > mostBytes) found.set(key.name, { ...key, index, mostBytes })
    }
  return [...found.values()]
}

/**
 * Reads a TableDescription (AWS, DynamoDB API Reference).
 *
 * @throws SLUICE_PROTOCOL
 */
export function parseTable(table: Answer): TableInfo {
  const types = new Map(
    listOf(table['AttributeDefinitions']).map((item) => [
      textOf(item['AttributeName'], 'attribute name'),
      keyType(item['AttributeType']),
    ]),
  )
  const [partitionKey = null, sortKey = null] = keySchema(table['KeySchema'], types)
  if (partitionKey === null) answerOf(null, 'partition key')
  const billing = mode(table)
  return {
    name: textOf(table['TableName'], 'table name'),
    arn: typeof table['TableArn'] === 'string' ? table['TableArn'] : null,
    status: textOf(table['TableStatus'], 'table status'),
    partitionKey: partitionKey ?? { name: '', type: 'S' },
    sortKey,
    indexes: [
      ...listOf(table['GlobalSecondaryIndexes']).map((index) => parseIndex(index, 'global', types)),
      ...listOf(table['LocalSecondaryIndexes']).map((index) => parseIndex(index, 'local', types)),
    ],
    billing,
    provisioned:
      billing === 'provisioned'
        ? throughput(table['ProvisionedThroughput'], 'ReadCapacityUnits', 'WriteCapacityUnits')
        : null,
    onDemandLimit: throughput(table['OnDemandThroughput'], 'MaxReadRequestUnits', 'MaxWriteRequestUnits'),
    warm: throughput(table['WarmThroughput'], 'ReadUnitsPerSecond', 'WriteUnitsPerSecond'),
    items: numberOf(table['ItemCount']),
    bytes: numberOf(table['TableSizeBytes']),
    stream: isOn(table['StreamSpecification'], 'StreamEnabled'),
    deletionProtection: table['DeletionProtectionEnabled'] === true,
  }
}

/** For `inspect --json` and `table describe --json`. */
export function tableJson(table: TableInfo): Json {
  const key = ({ name, type }: KeyAttribute): Json => ({ name, type })
  const units = (both: Throughput | null): Json => (both === null ? null : { ...both })
  return {
    name: table.name,
    arn: table.arn,
    status: table.status,
    partitionKey: key(table.partitionKey),
    sortKey: table.sortKey === null ? null : key(table.sortKey),
    indexes: table.indexes.map((index) => ({ ...index, keys: index.keys.map(key) })),
    billing: table.billing,
    provisioned: units(table.provisioned),
    onDemandLimit: units(table.onDemandLimit),
    warm: units(table.warm),
    items: table.items,
    bytes: table.bytes,
    stream: table.stream,
    deletionProtection: table.deletionProtection,
  }
}

function parseIndex(index: Answer, kind: 'global' | 'local', types: ReadonlyMap<string, KeyType>): TableIndex {
  return {
    name: textOf(index['IndexName'], 'index name'),
    kind,
    status: typeof index['IndexStatus'] === 'string' ? index['IndexStatus'] : null,
    keys: keySchema(index['KeySchema'], types),
  }
}

/** HASH first, RANGE second. */
function keySchema(value: unknown, types: ReadonlyMap<string, KeyType>): readonly KeyAttribute[] {
  const found = listOf(value).map((item) => {
    const name = textOf(item['AttributeName'], 'key attribute')
    return { isHash: item['KeyType'] === 'HASH', key: { name, type: types.get(name) ?? 'S' } }
  })
  return [...found.filter((item) => item.isHash), ...found.filter((item) => !item.isHash)].map((item) => item.key)
}

function keyType(value: unknown): KeyType {
  return value === 'N' || value === 'B' ? value : 'S'
}

/** Without a BillingModeSummary a table is provisioned (AWS, BillingModeSummary); older servers tell on-demand tables by units of 0. */
function mode(table: Answer): 'on-demand' | 'provisioned' {
  const summary = table['BillingModeSummary']
  if (typeof summary === 'object' && summary !== null)
    return answerOf(summary, 'billing mode')['BillingMode'] === 'PAY_PER_REQUEST' ? 'on-demand' : 'provisioned'
  const units = throughput(table['ProvisionedThroughput'], 'ReadCapacityUnits', 'WriteCapacityUnits')
  return units === null || units.writeUnits === 0 ? 'on-demand' : 'provisioned'
}

/** -1 takes a limit away (AWS, OnDemandThroughput). */
function throughput(value: unknown, read: string, write: string): Throughput | null {
  if (typeof value !== 'object' || value === null) return null
  const units = (name: string): number | null => {
    const found = numberOf(answerOf(value, 'throughput')[name])
    return found === null || found < 0 ? null : found
  }
  const both = { readUnits: units(read), writeUnits: units(write) }
  return both.readUnits === null && both.writeUnits === null ? null : both
}

function isOn(value: unknown, name: string): boolean {
  return typeof value === 'object' && value !== null && answerOf(value, name)[name] === true
}
