import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type DynamoServer, startDynalite } from '../support/dynamodb.ts'
import { cli } from './cli-process.ts'

let server: DynamoServer
beforeAll(async () => {
  server = await startDynalite()
})
afterAll(() => server.stop())

const table = (...words: readonly string[]) => cli(['table', ...words], { env: server.env })

describe('table', () => {
  it('creates, describes and deletes, for people and for programs', async () => {
    const url = 'dynamodb:///Readings'
    const created = await table('create', url, '--partition-key', 'sensor', '--sort-key', 'time:N')
    expect(created).toMatchObject({ code: 0, stderr: '' })
    expect(created.stdout).toContain('dynamodb:///Readings  created')
    expect(created.stdout).toContain('sensor:S, time:N')
    const described = await table('describe', url, '--json')
    expect(JSON.parse(described.stdout)).toMatchObject({
      action: 'describe',
      url,
      table: { status: 'ACTIVE', billing: 'on-demand', sortKey: { name: 'time', type: 'N' } },
    })
    const unasked = await table('delete', url)
    expect(unasked.code).toBe(2)
    expect(unasked.stderr).toContain('pass --yes')
    expect((await table('delete', url, '--yes')).code).toBe(0)
    const gone = await table('describe', url)
    expect(gone.code).toBe(2)
    expect(gone.stderr).toContain('[SLUICE_NOT_FOUND]')
  })

  it('says what can be done, and what a key is', async () => {
    const unknown = await table('drop', 'dynamodb:///Readings')
    expect(unknown).toMatchObject({ code: 2, stdout: '' })
    expect(unknown.stderr).toContain('one of create, describe, delete')
    expect((await table('create', 'dynamodb:///Readings')).stderr).toContain('--partition-key NAME:S')
    expect((await table('create', 'dynamodb:///Readings', '--partition-key', 'id:X')).stderr).toContain(
      '[SLUICE_USAGE]',
    )
  })
})
