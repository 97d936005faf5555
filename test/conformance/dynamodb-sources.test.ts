import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll } from 'vitest'
import { dynamodbConnector } from '../../src/connectors/dynamodb/connector.ts'
import type { Source } from '../../src/core/ports.ts'
import { dynamoCall, type DynamoServer, startDynalite, startMinistack, type WireItem } from '../support/dynamodb.ts'
import { describeSource, rowText, type SourceUnderTest } from './source-suite.ts'

const COLUMNS = ['id', 'name', 'note']
const TABLE = 'Conformance'
/** 16 segments of some 15 items; the long ones make several pages of 1 MB of a segment. */
const ITEMS = 240
const LONG_EVERY = 4
const LONG = 'l'.repeat(250_000)
/** What a plan of a small table has. */
const SEGMENTS = 16

const valueOf = (i: number): WireItem => ({
  id: { S: `k${i}` },
  ...(i % 11 === 0 ? {} : { name: i % 13 === 0 ? { S: '' } : { S: `näme "${i}"\n` } }),
  note: { S: i % LONG_EVERY === 0 ? `${i}${LONG}` : `note ${i}` },
})

/** The server's own answer of what each segment holds. */
async function segmentsOf(server: DynamoServer): Promise<string[][]> {
  const all: string[][] = []
  for (let segment = 0; segment < SEGMENTS; segment += 1) {
    const rows: string[] = []
    let from: unknown
    do {
      const body = { TableName: TABLE, Segment: segment, TotalSegments: SEGMENTS, ExclusiveStartKey: from }
      const page = (await dynamoCall(server, 'Scan', body)) as { Items: WireItem[]; LastEvaluatedKey?: unknown }
      for (const item of page.Items) rows.push(rowText(COLUMNS.map((name) => (item[name]?.['S'] as string) ?? null)))
      from = page.LastEvaluatedKey
    } while (from !== undefined)
    all.push(rows)
  }
  return all
}

async function fill(server: DynamoServer): Promise<void> {
  await dynamoCall(server, 'CreateTable', {
    TableName: TABLE,
    BillingMode: 'PAY_PER_REQUEST',
    AttributeDefinitions: [{ AttributeName: 'id', AttributeType: 'S' }],
    KeySchema: [{ AttributeName: 'id', KeyType: 'HASH' }],
  })
  for (let i = 0; i < ITEMS; i += 20) {
    const puts = Array.from({ length: 20 }, (_, k) => ({ PutRequest: { Item: valueOf(i + k) } }))
    await dynamoCall(server, 'BatchWriteItem', { RequestItems: { [TABLE]: puts } })
  }
}

for (const [name, start] of [
  ['dynalite', startDynalite],
  ['ministack', startMinistack],
] as const) {
  let server: DynamoServer
  let expected: string[][] = []
  beforeAll(async () => {
    server = await start()
    await fill(server)
    expected = await segmentsOf(server)
  })
  afterAll(() => server.stop())

  const subject = (): Promise<SourceUnderTest> => {
    const spoolDir = mkdtempSync(join(tmpdir(), 'sluice-spool-'))
    return Promise.resolve({
      form: 'rows',
      columns: COLUMNS,
      expected,
      open: async (): Promise<Source> => {
        const source = await dynamodbConnector.openSource?.({
          url: `dynamodb:///${TABLE}`,
          options: { columns: COLUMNS },
          env: server.env,
          spoolDir,
          resumable: true,
          reporter: { warn: () => undefined, retried: () => undefined },
          signal: new AbortController().signal,
          retryForMs: 10_000,
        })
        if (source === undefined) throw new Error('no source')
        return source
      },
      change: () => Promise.resolve(),
      close: () => Promise.resolve(rmSync(spoolDir, { recursive: true, force: true })),
    })
  }
  describeSource(`a table of ${name}`, subject, { unpinned: true, marked: true })
}
