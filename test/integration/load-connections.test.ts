import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { copy, type CopyOptions, type JobResult, verify } from '../../src/index.ts'
import { freePort } from '../support/free-port.ts'
import { makeCertificates } from '../support/postgres-tls.ts'
import { startTransactionPooler } from '../support/transaction-pooler.ts'
import {
  freshDatabase,
  type PostgresAddress,
  type PostgresServer,
  psql,
  sharedServices,
  startPostgres15,
} from '../support/services.ts'

let folder = ''
let db: PostgresAddress & { drop(): Promise<void> }
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-connections-'))
  writeFileSync(join(folder, 'in.csv'), 'id,name\n1,Ada\n2,Grace\n')
  db = await freshDatabase(sharedServices().postgres15, 'load_connections')
  await psql(db, 'CREATE TABLE people (id int, name text); CREATE SCHEMA other; CREATE TABLE other.pets (id int)')
})
afterAll(async () => {
  rmSync(folder, { recursive: true })
  await db.drop()
})

/** A new job each time, whatever an earlier one of the same sink left. */
function load(sink: string, options: CopyOptions = {}, env: Record<string, string> = {}): Promise<JobResult> {
  const source = join(folder, 'in.csv')
  return copy({ source, sink, options, env, stateDir: join(folder, 'state'), newJob: true })
}

const people = (): Promise<string> => psql(db, 'SELECT count(*) FROM people')

describe('what is refused before a row is read', () => {
  it('names the GRANT that a role lacks', async () => {
    const role = `reader_${process.pid}`
    await psql(db, `CREATE ROLE ${role} LOGIN PASSWORD 'pw'; GRANT SELECT ON people TO ${role}`)
    try {
      const url = db.url.replace(/\/\/[^@]*@/, `//${role}:pw@`)
      const result = await load(`${url}?table=people`)
      expect(result).toMatchObject({
        status: 'failed',
        rowsRead: 0,
        error: { code: 'SLUICE_ACCESS_DENIED', hint: expect.stringMatching(/GRANT INSERT.* ON .*people/) as string },
      })
      expect(await people()).toBe('0')
    } finally {
      await psql(db, `DROP OWNED BY ${role}; DROP ROLE ${role}`)
    }
  })

  it('loads columns that a role may write, and names those that it may not', async () => {
    const role = `writer_${process.pid}`
    await psql(db, `CREATE TABLE partly (id int, name text, age int DEFAULT 5)`)
    await psql(db, `CREATE ROLE ${role} LOGIN PASSWORD 'pw'; GRANT INSERT (id) ON partly TO ${role}`)
    try {
      const url = db.url.replace(/\/\/[^@]*@/, `//${role}:pw@`)
      const refused = await load(`${url}?table=partly`)
      expect(refused).toMatchObject({
        rowsRead: 0,
        error: {
          code: 'SLUICE_ACCESS_DENIED',
          hint: expect.stringMatching(/GRANT INSERT \("name"\) ON .*--select/) as string,
        },
      })
      expect((await load(`${url}?table=partly`, { select: ['id'] })).error).toBeUndefined()
      expect(await psql(db, 'SELECT DISTINCT age FROM partly')).toBe('5')
    } finally {
      await psql(db, `DROP TABLE partly; DROP OWNED BY ${role}; DROP ROLE ${role}`)
    }
  })

  it.each<[string, (url: string) => string, string]>([
    ['a wrong password', (url) => url.replace(/(\/\/[^:]*:)[^@]*@/, '$1geheim@'), 'SLUICE_CREDENTIALS'],
    ['an unknown user', (url) => url.replace(/\/\/[^:]*:/, '//nobody:'), 'SLUICE_CREDENTIALS'],
    ['an unknown database', (url) => url.replace(/\/[^/?]*\?/, '/nonesuch?'), 'SLUICE_NOT_FOUND'],
    ['an unknown host', (url) => url.replace(/@[^:]*:/, '@nonesuch.invalid:'), 'SLUICE_NOT_FOUND'],
    ['a schema that is not there', (url) => url.replace('table=people', 'table=wrong.people'), 'SLUICE_NOT_FOUND'],
  ])('%s', async (_, change, code) => {
    const result = await load(change(`${db.url}?table=people`))
    expect(result).toMatchObject({ status: 'failed', rowsRead: 0, error: { code } })
    expect(JSON.stringify(result)).not.toContain('geheim')
    expect(result.error?.hint).not.toBe('')
  })

  it.each([
    ['peopel', 'people'],
    ['pets', 'other.pets'],
    ['other.pet', 'other.pets'],
  ])('a table %s that is missing: names %s', async (wrong, right) => {
    const { error } = await load(`${db.url}?table=${wrong}`)
    expect(error).toMatchObject({ code: 'SLUICE_NOT_FOUND', message: expect.stringContaining(wrong) as string })
    expect(error?.hint).toContain(right)
  })

  it('nothing listens: says so at once, whatever --retry-for', async () => {
    const result = await load(`postgres://u:p@127.0.0.1:${await freePort()}/x?table=people`)
    expect(result).toMatchObject({ status: 'failed', rowsRead: 0, error: { code: 'SLUICE_UNREACHABLE' } })
  }, 5000)
})

describe("another session's ACCESS EXCLUSIVE lock", () => {
  async function hold(work: () => Promise<void>): Promise<void> {
    const session = spawn('psql', ['-X', '-q', '-A', '-t'], {
      env: { PATH: process.env['PATH'] ?? '', ...db.env },
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    session.stdin.write('BEGIN; LOCK TABLE people IN ACCESS EXCLUSIVE MODE; SELECT 1;\n')
    await once(session.stdout, 'data')
    const ended = once(session, 'close')
    try {
      await work()
    } finally {
      session.stdin.end('ROLLBACK;\n')
      await ended
    }
  }

  it('stops the job, to be resumed, once --retry-for is over', async () => {
    await hold(async () => {
      const result = await load(`${db.url}?table=people`, { retryFor: 2000 })
      expect(result).toMatchObject({ status: 'stopped', rowsWritten: 0, error: { code: 'SLUICE_LOCKED' } })
      expect(result.resumeCommand).toContain(result.jobId)
      expect(result.error?.hint).toContain('session')
    })
  })

  it('is waited for, and the rows come once', async () => {
    await psql(db, 'TRUNCATE people')
    let job: Promise<JobResult> | undefined
    await hold(async () => {
      job = load(`${db.url}?table=people`, { retryFor: 60_000 })
      await new Promise((resolve) => setTimeout(resolve, 3000))
    })
    expect(await job).toMatchObject({ status: 'done', rowsWritten: 2 })
    expect(await people()).toBe('2')
  })
})

describe('TLS with SCRAM', () => {
  let server: PostgresServer
  let otherCa = ''
  beforeAll(async () => {
    server = await startPostgres15({ tls: true, tlsOnly: true })
    await server.psql('CREATE TABLE people (id int, name text)')
    otherCa = makeCertificates(mkdtempSync(join(folder, 'ca-'))).caFile
  })
  afterAll(() => server.stop())

  const url = (query: string, host = server.host): string =>
    `${server.url.replace(server.host, host)}?table=people&${query}`

  it('verify-full, with the authority of the certificate', async () => {
    for (const host of ['127.0.0.1', 'localhost']) {
      const result = await load(url(`sslmode=verify-full&sslrootcert=${server.caFile ?? ''}`, host))
      expect(result).toMatchObject({ status: 'done', rowsWritten: 2 })
    }
    const env = { PGSSLMODE: 'verify-full', PGSSLROOTCERT: server.caFile ?? '' }
    expect(await load(`${server.url}?table=people`, {}, env)).toMatchObject({ status: 'done' })
  })

  it.each(['prefer', 'require'])('%s, with no authority at all', async (mode) => {
    expect(await load(url(`sslmode=${mode}`))).toMatchObject({ status: 'done', rowsWritten: 2 })
  })

  it('refuses another authority, and no authority, before a password is sent', async () => {
    const wrong = await load(url(`sslmode=verify-full&sslrootcert=${otherCa}`))
    expect(wrong).toMatchObject({ status: 'failed', rowsRead: 0, error: { code: 'SLUICE_TLS' } })
    expect(wrong.error?.hint).toMatch(/sslrootcert|authority/)
    const missing = await load(url('sslmode=verify-full&sslrootcert=/nonexistent/ca.crt'))
    expect(missing).toMatchObject({
      status: 'failed',
      error: { code: expect.stringMatching(/TLS|NOT_FOUND|USAGE/) as string },
    })
  })

  it('refuses a certificate for another host', async () => {
    const result = await load(url(`sslmode=verify-full&sslrootcert=${server.caFile ?? ''}`, '127.0.0.2'))
    expect(result).toMatchObject({
      status: 'failed',
      error: { code: expect.stringMatching(/TLS|UNREACHABLE/) as string },
    })
  })

  it('says that the server wants TLS', async () => {
    const result = await load(url('sslmode=disable'))
    expect(result).toMatchObject({ status: 'failed', error: { code: 'SLUICE_CREDENTIALS' } })
    expect(result.error?.hint).toContain('sslmode')
  })

  it('refuses a wrong password over TLS', async () => {
    const result = await load(
      url(`sslmode=verify-full&sslrootcert=${server.caFile ?? ''}`).replace(/(\/\/[^:]*:)[^@]*@/, '$1geheim@'),
    )
    expect(result).toMatchObject({ status: 'failed', error: { code: 'SLUICE_CREDENTIALS' } })
  })
})

describe('a pooler that gives each transaction another session', () => {
  it('changes no value, either way: the settings are those of the transaction', async () => {
    const odd = await freshDatabase(sharedServices().postgres15, 'load_pooled')
    const pooler = await startTransactionPooler(odd)
    const url = odd.url.replace(/@[^/]*/, `@${pooler.address}`)
    const run = (source: string, sink: string): Promise<JobResult> =>
      copy({
        source,
        sink,
        options: sink.startsWith('postgres') ? {} : { ifExists: 'overwrite' },
        env: {},
        stateDir: join(folder, 'state'),
        newJob: true,
      })
    try {
      await psql(
        odd,
        `ALTER DATABASE "${odd.database}" SET DateStyle = 'SQL, DMY'; ALTER DATABASE "${odd.database}" SET TimeZone = 'Asia/Tokyo';
         ALTER DATABASE "${odd.database}" SET IntervalStyle = 'sql_standard'; CREATE TABLE t (d date, at timestamptz, i interval)`,
      )
      const text = 'd,at,i\n2024-02-03,2024-02-03 04:05:06+00,1 day 02:00:00\n'
      writeFileSync(join(folder, 'odd.csv'), text.replace('+00', ''))
      expect(await run(join(folder, 'odd.csv'), `${url}?table=t`)).toMatchObject({ status: 'done', rowsWritten: 1 })
      expect(await psql(odd, `SELECT d, extract(epoch FROM at)::int FROM t`)).toBe('03/02/2024|1706933106')
      expect(await run(`${url}?table=t`, join(folder, 'back.csv'))).toMatchObject({ status: 'done', rowsRead: 1 })
      expect(readFileSync(join(folder, 'back.csv'), 'utf8')).toBe(text)
      const request = { options: {}, env: {}, stateDir: join(folder, 'state') }
      expect(await verify(join(folder, 'back.csv'), `${url}?table=t`, request)).toMatchObject({ same: true })
      writeFileSync(join(folder, 'odd.csv'), 'd,at,i\n03/02/2024,,\n')
      expect(await run(join(folder, 'odd.csv'), `${url}?table=t`)).toMatchObject({ error: { code: 'SLUICE_VALUE' } })
      writeFileSync(join(folder, 'odd.csv'), 'd,at,i\n')
      const beforeSql = [`INSERT INTO t (d, at) VALUES ('2024-02-04', '2024-02-04 04:05:06')`]
      await copy({
        source: join(folder, 'odd.csv'),
        sink: `${url}?table=t`,
        options: { beforeSql },
        env: {},
        stateDir: join(folder, 'state'),
        newJob: true,
      })
      expect(await psql(odd, `SELECT extract(epoch FROM at)::int FROM t ORDER BY at DESC LIMIT 1`)).toBe('1707019506')
    } finally {
      await pooler.stop()
      await odd.drop()
    }
  })
})
