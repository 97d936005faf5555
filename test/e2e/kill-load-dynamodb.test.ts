import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type DynamoFaults, type DynamoServer, scanAll, startDynalite, startDynamoFaults } from '../support/dynamodb.ts'
import { until } from './bytes-place.ts'
import { cli, ended, startCli } from './cli-process.ts'

/** Three extents of 4 MiB, and few items, since dynalite takes some thousand a second. */
const ROWS = 3000
const ROW_BYTES = 4000

let server: DynamoServer
let faults: DynamoFaults
let folder: string

beforeAll(async () => {
  server = await startDynalite()
  faults = await startDynamoFaults(server)
  folder = mkdtempSync(join(tmpdir(), 'sluice-kill-dynamo-'))
  const rows = Array.from({ length: ROWS }, (_, i) => `${i},${String(i).padEnd(ROW_BYTES, 'x')}\n`)
  writeFileSync(join(folder, 'in.csv'), `id,v\n${rows.join('')}`)
})

afterAll(async () => {
  await faults.stop()
  await server.stop()
  rmSync(folder, { recursive: true })
})

// Requests of 25: the first extent ends at request 42, the second at 84.
it.each([
  [3, 0],
  [50, 0],
  [100, 0],
  [60, 2],
])(
  'killed after request %d, with %d threads, it is gone on with, and the table is whole',
  async (requests, workers) => {
    const table = `Killed-${requests}`
    const options = { cwd: folder, env: faults.env }
    const state = ['--state-dir', join(folder, `state-${requests}`)]
    const first = faults.batches.length
    const flags = ['--create-table', '--partition-key', 'id', '--concurrency', '2', '--types', 'string']
    flags.push('--workers', String(workers))
    const child = startCli(
      ['copy', 'in.csv', `dynamodb:///${table}`, ...flags, ...state, '--progress', 'none'],
      options,
    )
    const end = ended(child)
    await until(() => faults.batches.length - first >= requests)
    child.kill('SIGKILL')
    await end

    const [job] = (
      JSON.parse((await cli(['jobs', '--json', ...state], options)).stdout) as { jobs: { jobId: string }[] }
    ).jobs
    const again = faults.batches.length
    const resumed = await cli(['resume', job?.jobId ?? '', ...state, '--json', '--progress', 'none'], options)
    expect(resumed.stderr).not.toContain('error')
    expect(resumed.code).toBe(0)
    expect(JSON.parse(resumed.stdout)).toMatchObject({ status: 'done', runs: 2, rowsRead: ROWS, rowsWritten: ROWS })
    // What was recorded is not written again.
    const rewritten = faults.batches.slice(again).reduce((sum, batch) => sum + batch.items.length, 0)
    if (requests >= 50) expect(rewritten).toBeLessThan(ROWS * 0.7)
    const items = await scanAll(server, table)
    expect(new Set(items.map((item) => item.id?.S)).size).toBe(ROWS)
    expect(items.every((item) => item.v?.S === String(item.id?.S).padEnd(ROW_BYTES, 'x'))).toBe(true)
  },
)

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
