import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { connect, type PgConnection } from '../../src/connectors/postgres/connection/connection.ts'
import { describeTable, findTable, requireLoadable } from '../../src/connectors/postgres/table/table.ts'
import { parsePostgresUrl } from '../../src/connectors/postgres/connection/url.ts'
import { type PostgresServer, startPostgres15 } from '../support/services.ts'

const signal = new AbortController().signal
const folder = mkdtempSync(join(tmpdir(), 'sluice-connection-'))
let server: PostgresServer
const open: PgConnection[] = []

async function connectTo(
  parameters: string,
  env: Record<string, string> = {},
  base = server.url,
): Promise<PgConnection> {
  const connection = await connect(parsePostgresUrl(`${base}${parameters}`, env), {
    signal,
    applicationName: 'sluice test',
  })
  open.push(connection)
  return connection
}

const isTls = async (connection: PgConnection): Promise<unknown> =>
  (await connection.query<{ ssl: boolean }>('SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()'))[0]?.ssl

beforeAll(async () => {
  server = await startPostgres15({ tls: true })
})

afterAll(async () => {
  await Promise.all(open.map((connection) => connection.close()))
  await server?.stop()
  rmSync(folder, { recursive: true })
})

describe('a session', () => {
  it('has the settings that cli.md lists, whatever the role says', async () => {
    await server.psql(
      "ALTER ROLE CURRENT_USER SET DateStyle = 'German'; ALTER ROLE CURRENT_USER SET TimeZone = 'Asia/Tokyo'; ALTER ROLE CURRENT_USER SET statement_timeout = '10s'",
    )
    const connection = await connectTo('')
    const [row] = await connection.query(
      `SELECT current_setting('DateStyle') AS d, current_setting('IntervalStyle') AS i, current_setting('TimeZone') AS z, current_setting('bytea_output') AS b,
              current_setting('extra_float_digits') AS f, current_setting('client_encoding') AS e, current_setting('statement_timeout') AS s, current_setting('application_name') AS a`,
    )
    expect(row).toEqual({
      d: 'ISO, YMD',
      i: 'postgres',
      z: 'UTC',
      b: 'hex',
      f: '3',
      e: 'UTF8',
      s: '0',
      a: 'sluice test',
    })
    expect(connection.version).toBeGreaterThanOrEqual(150_000)
    const [pid] = await connection.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
    expect(connection.backendPid).toBe(pid?.pid)
    await server.psql('ALTER ROLE CURRENT_USER RESET ALL')
  })

  it('tells what ended it, and does not end the process', async () => {
    const connection = await connectTo('')
    await server.psql(`SELECT pg_terminate_backend(${connection.backendPid})`)
    await expect(connection.query('SELECT 1')).rejects.toMatchObject({ code: 'SLUICE_SERVER_GONE' })
    expect(connection.lost()).toMatchObject({ code: 'SLUICE_SERVER_GONE' })
    await connection.close()
  })

  it('takes options, and a time zone that there is', async () => {
    const connection = await connectTo('?options=-c%20work_mem%3D7MB')
    expect(await connection.query("SELECT current_setting('work_mem') AS m")).toEqual([{ m: '7MB' }])
    await expect(
      connect(parsePostgresUrl(server.url, {}), { signal, applicationName: 'x', timeZone: 'Nowhere/Land' }),
    ).rejects.toMatchObject({ code: 'SLUICE_USAGE' })
  })
})

describe('TLS', () => {
  it.each([
    ['disable', false], ['allow', false], ['prefer', true], ['require', true],
  ] as const)('sslmode=%s', async (mode, tls) => {
    expect(await isTls(await connectTo(`?sslmode=${mode}`))).toBe(tls)
  }) // prettier-ignore

  it('checks the chain and the name', async () => {
    const ca = encodeURIComponent(server.caFile ?? '')
    expect(await isTls(await connectTo(`?sslmode=verify-full&sslrootcert=${ca}`))).toBe(true)
    await expect(connectTo('?sslmode=verify-full&sslrootcert=system')).rejects.toMatchObject({ code: 'SLUICE_TLS' })
    // The name is no name of the certificate; the address is reached all the same.
    const elsewhere = server.url.replace(/@[^/]*\//, `@wrong.example:${server.port}/`)
    await expect(
      connectTo(`?hostaddr=127.0.0.1&sslmode=verify-full&sslrootcert=${ca}`, {}, elsewhere),
    ).rejects.toMatchObject({ code: 'SLUICE_TLS' })
    expect(await isTls(await connectTo(`?hostaddr=127.0.0.1&sslmode=verify-ca&sslrootcert=${ca}`, {}, elsewhere))).toBe(
      true,
    )
  })

  it('refuses a key that others may read', async () => {
    const key = join(folder, 'key.pem')
    writeFileSync(key, 'x')
    chmodSync(key, 0o644)
    const cert = join(folder, 'cert.pem')
    writeFileSync(cert, 'x')
    await expect(connectTo(`?sslmode=require&sslcert=${cert}&sslkey=${key}`)).rejects.toMatchObject({
      code: 'SLUICE_TLS',
    })
  })
})

describe('who and where', () => {
  it('finds the password in a password file, and says when none is there', async () => {
    const bare = `postgres://${server.user}@${server.host}:${server.port}/${server.database}`
    const file = join(folder, 'pgpass')
    writeFileSync(file, `*:${server.port}:*:*:${server.password.replace(/[:\\]/g, '\\$&')}\n`)
    chmodSync(file, 0o600)
    expect(await isTls(await connectTo('', { PGPASSFILE: file }, bare))).toBe(true)
    await expect(connectTo('', {}, bare)).rejects.toMatchObject({ code: 'SLUICE_CREDENTIALS' })
    await expect(connectTo('', { PGPASSWORD: 'wrong' }, bare)).rejects.toMatchObject({ code: 'SLUICE_CREDENTIALS' })
    chmodSync(file, 0o644)
    await expect(connectTo('', { PGPASSFILE: file }, bare)).rejects.toMatchObject({
      hint: expect.stringContaining('chmod 0600') as string,
    })
  })

  it('goes on to the next host, and picks by target_session_attrs', async () => {
    const two = server.url.replace(/@[^/]*\//, `@127.0.0.1:1,127.0.0.1:${server.port}/`)
    expect((await connectTo('?target_session_attrs=read-write', {}, two)).host.port).toBe(server.port)
    await expect(connectTo('?target_session_attrs=standby')).rejects.toMatchObject({ code: 'SLUICE_UNREACHABLE' })
    expect((await connectTo('?target_session_attrs=prefer-standby')).host.port).toBe(server.port)
  })

  it('says that nothing listens, that the database is missing', async () => {
    await expect(connectTo('', {}, 'postgres://u:p@127.0.0.1:1/d')).rejects.toMatchObject({
      code: 'SLUICE_UNREACHABLE',
      where: { url: 'postgres://u@127.0.0.1:1/d' },
    })
    await expect(connectTo('', {}, server.url.replace(/\/[^/]*$/, '/nowhere'))).rejects.toMatchObject({
      code: 'SLUICE_NOT_FOUND',
    })
  })

  it('says that no session begins where the connection is closed at once', async () => {
    const closing = createServer((socket) => socket.once('data', () => socket.end()))
    await new Promise<void>((resolve) => closing.listen(0, '127.0.0.1', resolve))
    const address = closing.address()
    const url = `postgres://u:p@127.0.0.1:${typeof address === 'object' ? (address?.port ?? 0) : 0}/d?sslmode=disable`
    await expect(connectTo('', {}, url)).rejects.toMatchObject({
      code: 'SLUICE_UNREACHABLE',
      hint: expect.stringContaining('begins no session') as string,
    })
    closing.close()
  })

  it('says that sslnegotiation=direct is not for servers before 17', async () => {
    await expect(connectTo('?sslmode=require&sslnegotiation=direct')).rejects.toMatchObject({
      code: 'SLUICE_TLS',
      hint: expect.stringContaining('PostgreSQL 17') as string,
    })
  })

  describe('a server that takes the connection and says nothing', () => {
    let silent: Server
    let url: string

    beforeAll(async () => {
      silent = createServer(() => undefined)
      await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
      const address = silent.address()
      url = `postgres://u:p@127.0.0.1:${typeof address === 'object' ? (address?.port ?? 0) : 0}/d`
    })

    afterAll(() => {
      silent.close()
    })

    it('is given up after connect_timeout', async () => {
      await expect(connectTo('?connect_timeout=1&sslmode=disable', {}, url)).rejects.toMatchObject({
        code: 'SLUICE_UNREACHABLE',
      })
    })

    it('is left when the signal says so', async () => {
      const controller = new AbortController()
      const connecting = connect(parsePostgresUrl(url, {}), { signal: controller.signal, applicationName: 'x' })
      setTimeout(() => controller.abort(new Error('enough')), 50)
      await expect(connecting).rejects.toThrow('enough')
    })
  })
})

describe('describeTable', () => {
  const reference = (table: string) =>
    parsePostgresUrl(`postgres://u@h/d?table=${encodeURIComponent(table)}`, {}).table ?? {
      schema: null,
      table: { name: '', literal: true },
    }

  it('knows columns, keys, references, triggers of a partitioned table', async () => {
    const connection = await connectTo('')
    await connection.query(`
      CREATE DOMAIN price AS numeric(8,2) NOT NULL;
      CREATE TABLE tree (id int, region text, parent int, cost price, double numeric GENERATED ALWAYS AS (cost * 2) STORED, note varchar(9) DEFAULT 'x',
        PRIMARY KEY (region, id), UNIQUE (id, note, region)) PARTITION BY LIST (region);
      CREATE TABLE tree_a PARTITION OF tree FOR VALUES IN ('a');
      ALTER TABLE tree ADD CONSTRAINT up FOREIGN KEY (region, parent) REFERENCES tree;
      CREATE FUNCTION noop() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
      CREATE TRIGGER t BEFORE INSERT ON tree_a FOR EACH ROW EXECUTE FUNCTION noop();
      CREATE VIEW seen AS SELECT 1 AS one;
      CREATE TABLE "Mixed" (a int); CREATE TABLE leaf (a int GENERATED ALWAYS AS IDENTITY, b int GENERATED BY DEFAULT AS IDENTITY)`)
    const tree = await describeTable(connection, reference('Tree'))
    expect(tree).toMatchObject({
      schema: 'public',
      name: 'tree',
      kind: 'partitioned',
      partitioned: true,
      primaryKey: ['region', 'id'],
      uniqueKeys: [['id', 'note', 'region']],
      selfReferencing: true,
      triggers: ['t'],
      rowSecurity: false,
    })
    expect(tree.foreignKeys).toEqual([{ name: 'up', columns: ['region', 'parent'], references: 'public.tree' }])
    expect(tree.columns.map(({ name, nullable, identity, generated, hasDefault }) => ({ name, nullable, identity, generated, hasDefault }))).toMatchObject([
      { name: 'id', nullable: false, identity: null }, { name: 'region', nullable: false }, { name: 'parent', nullable: true },
      { name: 'cost', nullable: false }, { name: 'double', generated: true, hasDefault: false }, { name: 'note', hasDefault: true },
    ]) // prettier-ignore
    expect(tree.columns[3]).toMatchObject({ type: 'price', baseType: 'numeric(8,2)', baseTypeOid: 1700 })
    expect((await describeTable(connection, reference('"tree_a"'))).selfReferencing).toBe(true)
    const leaf = await describeTable(connection, reference('leaf'))
    expect(leaf.selfReferencing).toBe(false)
    expect(leaf.columns.map(({ identity }) => identity)).toEqual(['always', 'by-default'])
  })

  it('finds names folded, then exact, and suggests the nearest', async () => {
    const connection = await connectTo('')
    expect((await findTable(connection, reference('Mixed')))?.name).toBe('Mixed')
    expect(await findTable(connection, reference('"mixed"'))).toBeNull()
    await expect(describeTable(connection, reference('tre'))).rejects.toMatchObject({
      code: 'SLUICE_NOT_FOUND',
      hint: expect.stringContaining('tree') as string,
    })
    const view = await describeTable(connection, reference('seen'))
    expect(() => requireLoadable(view)).toThrow(expect.objectContaining({ code: 'SLUICE_USAGE' }))
  })
})
