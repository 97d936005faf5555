import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type DynamoPlace, openDynamoPlace } from '../support/dynamo-place.ts'
import { type DynamoFaults, type DynamoServer, scanAll } from '../support/dynamodb.ts'
import { until } from './bytes-place.ts'
import { cli, ended, startCli } from './cli-process.ts'

/** Three extents of 2 MiB as CSV, and 48 of parsed rows; few items, since dynalite takes some thousand a second. */
const ROWS = 1000
const ROW_BYTES = 6000
const REQUESTS = ROWS / 25
/** Items that the server may still read from the connections of a process that is no more. */
const UNDER_WAY = 32 * 25

let place: DynamoPlace
let server: DynamoServer
let faults: DynamoFaults
let folder: string

beforeAll(async () => {
  place = await openDynamoPlace('kill-dynamo')
  ;({ server, faults, folder } = place)
  const rows = Array.from({ length: ROWS }, (_, i) => `${i},${String(i).padEnd(ROW_BYTES, 'x')}\n`)
  writeFileSync(join(folder, 'in.csv'), `id,v\n${rows.join('')}`)
})

afterAll(() => place.close())

/** Behind which request a run is killed: a seed gives it, so that a failure can be had again. */
const randomOf = (round: number): number => 1 + (((round * 2_654_435_761) >>> 8) % (REQUESTS - 4))

/** Rows of the extents that the job's folder says are in the table. */
function recordedRows(state: string, job: string): number {
  const lines = readFileSync(join(folder, state, 'jobs', job, 'checkpoint.jsonl'), 'utf8')
    .split('\n')
    .slice(0, -1)
  const entries = lines.map((line) => JSON.parse(line) as { entry?: { receipt?: { rowsWritten: number } } })
  return entries.reduce((sum, { entry }) => sum + (entry?.receipt?.rowsWritten ?? 0), 0)
}

it.each([
  [1, 0, 'csv'],
  [2, 2, 'csv'],
  [3, 0, 'csv'],
  [4, 2, 'csv'],
  [5, 0, 'rows'],
  [6, 2, 'rows'],
  [7, 0, 'rows'],
  [8, 2, 'rows'],
  [9, 0, 'csv'],
  [10, 2, 'csv'],
])('round %d: killed anywhere with %d threads at %s, it is gone on with, and the table is whole', async (...round) => {
  const [number, workers, form] = round
  const [table, state, job] = [`Killed-${number}`, `state-${number}`, `round-${number}`]
  const options = { cwd: folder, env: faults.env }
  const first = faults.batches.length
  const kills = randomOf(number)
  const flags = ['--create-table', '--partition-key', 'id', '--types', 'string', '--workers', String(workers)]
  if (form === 'rows') flags.push('--rename', 'v=w')
  flags.push('--job-id', job, '--state-dir', state, '--progress', 'none')
  const child = startCli(['copy', 'in.csv', `dynamodb:///${table}`, ...flags], options)
  const end = ended(child)
  await until(() => faults.batches.length - first >= kills)
  child.kill('SIGKILL')
  expect((await end).stderr).not.toContain('error')

  const recorded = recordedRows(state, job)
  const again = faults.batches.length
  const words = ['resume', job, '--state-dir', state, '--json', '--progress', 'none']
  const { code, stderr, stdout } = await cli(words, options)
  expect({ kills, code, stderr }).toEqual({ kills, code: 0, stderr: expect.not.stringContaining('error') as string })
  expect(JSON.parse(stdout)).toMatchObject({ status: 'done', runs: 2, rowsRead: ROWS, rowsWritten: ROWS })
  // What was recorded is not written again.
  const rewritten = faults.batches.slice(again).reduce((sum, batch) => sum + batch.items.length, 0)
  expect(rewritten).toBeLessThanOrEqual(ROWS - recorded + UNDER_WAY)
  const value = form === 'rows' ? 'w' : 'v'
  const items = (await scanAll(server, table)).map((item) => [item.id?.S, item[value]?.S])
  expect(new Map(items as [string, string][]).size).toBe(ROWS)
  expect(items).toHaveLength(ROWS)
  expect(items.every(([id, v]) => v === String(id).padEnd(ROW_BYTES, 'x'))).toBe(true)
})

it('stopped by SIGINT with threads at work, it says how to go on, and ends', async () => {
  const options = { cwd: folder, env: faults.env }
  const first = faults.batches.length
  const flags = ['--create-table', '--partition-key', 'id', '--types', 'string', '--workers', '2']
  faults.decide = () => ({ delayMs: 200 })
  const child = startCli(['copy', 'in.csv', 'dynamodb:///Stopped', ...flags, '--state-dir', 'state-stopped'], options)
  const end = ended(child)
  await until(() => faults.batches.length - first >= 10)
  child.kill('SIGINT')
  const { code, stderr } = await end
  faults.decide = () => 'pass'
  expect(code).toBe(130)
  expect(stderr).toContain('sluice resume')
})
