import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from 'pg'
import { describe, expect, it } from 'vitest'
import { freshBucket, freshDatabase, psql, s3Do, s3Request, sharedServices, startPostgres15 } from './services.ts'

const shared = sharedServices()

describe('shared PostgreSQL', () => {
  it.each([
    ['15', shared.postgres15],
    ['18', shared.postgres18],
  ])('is version %s, by password, with a database of the test', async (version, server) => {
    const database = await freshDatabase(server, 'services')
    expect(await psql(database, 'SHOW server_version')).toMatch(new RegExp(`^${version}\\b`))
    expect(await psql(database, 'SELECT current_database(), count(*) FROM pg_stat_user_tables')).toBe(
      `${database.database}|0`,
    )
    const client = new Client({ connectionString: database.url.replace(database.password, 'wrong') })
    await expect(client.connect()).rejects.toMatchObject({ code: '28P01' })
    await client.end()
    await database.drop()
  })
})

describe('PostgreSQL of a test', () => {
  it('speaks TLS, is crashed and restarted on the same port, and is gone after stop', async () => {
    const server = await startPostgres15({ tls: true, tlsOnly: true, extraConf: ['max_connections = 7'] })
    try {
      expect(await server.psql('SHOW max_connections; SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()')).toBe(
        '7\nt',
      )
      const ca = readFileSync(server.caFile ?? '', 'utf8')
      const client = new Client({ connectionString: server.url, ssl: { ca } })
      client.on('error', () => undefined)
      await client.connect()
      expect((await client.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }])
      await server.psql('CREATE TABLE kept AS SELECT 5 AS five')
      const { pid } = server
      const query = client.query('SELECT pg_sleep(60)')
      const lost = expect(query).rejects.toThrow(/terminated|closed|ECONNRESET/i)
      await server.kill()
      await lost
      await expect(server.psql('SELECT 1')).rejects.toThrow(/refused/)
      await server.restart()
      expect(server.pid).not.toBe(pid)
      expect(await server.psql('SELECT five FROM kept')).toBe('5')
    } finally {
      await server.stop()
    }
    expect(() => process.kill(server.pid, 0)).toThrow(/ESRCH/)
    expect(() => readFileSync(join(server.dataDir, 'PG_VERSION'))).toThrow(/ENOENT/)
  })
})

describe('S3 services', () => {
  it.each([
    ['versitygw', shared.versitygw],
    ['SeaweedFS', shared.seaweedfs],
  ])('%s keeps objects, honours If-None-Match and If-Match, and refuses a wrong secret', async (_name, store) => {
    const bucket = await freshBucket(store)
    const path = `/${bucket}/a folder/100%+é.bin`
    const put = { method: 'PUT', path, body: 'some bytes', headers: { 'if-none-match': '*' } } as const
    await s3Do(store, put)
    expect((await s3Request(store, put)).status).toBe(412)
    const got = await s3Do(store, { method: 'GET', path })
    expect(got.body.toString()).toBe('some bytes')
    expect((await s3Request(store, { method: 'GET', path, headers: { 'if-match': '"other"' } })).status).toBe(412)
    const listed = await s3Do(store, { method: 'GET', path: `/${bucket}`, query: { 'list-type': '2' } })
    expect(listed.body.toString()).toContain('<Key>a folder/100%+é.bin</Key>')
    const wrong = { ...store, env: { ...store.env, AWS_SECRET_ACCESS_KEY: 'wrong' } }
    expect((await s3Request(wrong, { method: 'GET', path })).status).toBe(403)
  })
})
