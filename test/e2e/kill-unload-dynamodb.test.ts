import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type DynamoPlace, openDynamoPlace } from '../support/dynamo-place.ts'
import { dynamoCall, type DynamoFaults, type DynamoServer, type WireItem } from '../support/dynamodb.ts'
import { freshBucket, s3Do, sharedServices } from '../support/services.ts'
import { until } from './bytes-place.ts'
import { cli, ended, startCli } from './cli-process.ts'

/** 16 segments of two pages and more: some 40 requests of a Scan. */
const ITEMS = 900
const ITEM_CHARS = 24_000
/** Held up so long, a whole Scan takes about two seconds. */
const SCAN_MS = 100

let place: DynamoPlace
let server: DynamoServer
let faults: DynamoFaults
let folder = ''
let bucket = ''
const s3 = () => sharedServices().versitygw

beforeAll(async () => {
  place = await openDynamoPlace('kill-scan')
  ;({ server, faults, folder } = place)
  bucket = await freshBucket(s3(), 'killscan')
  await dynamoCall(server, 'CreateTable', {
    TableName: 'Killed',
    BillingMode: 'PAY_PER_REQUEST',
    AttributeDefinitions: [{ AttributeName: 'id', AttributeType: 'S' }],
    KeySchema: [{ AttributeName: 'id', KeyType: 'HASH' }],
  })
  for (let i = 0; i < ITEMS; i += 25) {
    const item = (k: number): WireItem => ({ id: { S: `k${k}` }, v: { S: valueOf(k) } })
    const puts = Array.from({ length: 25 }, (_, k) => ({ PutRequest: { Item: item(i + k) } }))
    await dynamoCall(server, 'BatchWriteItem', { RequestItems: { Killed: puts } })
  }
})
afterAll(() => place.close())

const valueOf = (k: number): string => `${k}`.padEnd(ITEM_CHARS, 'x')

/** The items of a file, by their keys; each line is one. */
function itemsIn(name: string, text: string): [string, string][] {
  const lines = text.trimEnd().split('\n')
  if (name.endsWith('.csv')) return lines.slice(1).map((line) => line.split(',') as [string, string])
  return lines.map((line) => {
    const { id, v } = JSON.parse(line) as { id: string; v: string }
    return [id, v]
  })
}

/** Where a run is killed: behind a number of requests that a seed gives, so that a failure can be had again. */
const randomOf = (round: number): number => 2 + (((round * 2_654_435_761) >>> 8) % 36)

it.each([
  [1, 'file.jsonl'],
  [2, 'file.csv'],
  [3, 's3.jsonl'],
  [4, 's3.csv'],
])('round %d: a Scan into %s, killed anywhere and gone on with, has every item once', async (round, name) => {
  const onS3 = name.startsWith('s3')
  const sink = onS3 ? `s3://${bucket}/${round}-${name}` : join(folder, `${round}-${name}`)
  const options = { cwd: folder, env: { ...s3().env, ...faults.env, ...keysOf() } }
  const state = ['--state-dir', join(folder, `state-${round}`)]
  const first = faults.scans
  const kills = randomOf(round)
  faults.scanDelayMs = SCAN_MS
  const child = startCli(
    ['copy', 'dynamodb:///Killed', sink, '--columns', 'id,v', ...state, '--part-size', '5MiB', '--progress', 'none'],
    options,
  )
  const end = ended(child)
  let over = false
  void end.then(() => (over = true))
  await until(() => over || faults.scans - first >= kills)
  child.kill('SIGKILL')
  expect((await end).stderr).not.toContain('error')
  faults.scanDelayMs = 0

  const listed = await cli(['jobs', '--json', ...state], options)
  const [job] = (JSON.parse(listed.stdout) as { jobs: { jobId: string }[] }).jobs
  const resumed = await cli(['resume', job?.jobId ?? '', ...state, '--json', '--progress', 'none'], options)
  expect({ kills, code: resumed.code, stderr: resumed.stderr }).toMatchObject({ kills, code: 0 })
  expect(JSON.parse(resumed.stdout)).toMatchObject({ status: 'done', runs: 2, rowsRead: ITEMS, rowsWritten: ITEMS })
  const text = onS3
    ? (await s3Do(s3(), { method: 'GET', path: `/${bucket}/${round}-${name}` })).body.toString('utf8')
    : readFileSync(sink, 'utf8')
  const items = itemsIn(name, text)
  expect(items).toHaveLength(ITEMS)
  expect(new Map(items).size).toBe(ITEMS)
  for (const [id, v] of items) expect(v === valueOf(Number(id.slice(1)))).toBe(true)
  if (onS3) {
    const uploads = await s3Do(s3(), { method: 'GET', path: `/${bucket}`, query: { uploads: '' } })
    expect(uploads.body.toString()).not.toContain('<UploadId>')
  }
})

/** S3's keys: DynamoDB's server takes any. */
function keysOf(): Record<string, string> {
  const { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION } = s3().env
  return { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION }
}
