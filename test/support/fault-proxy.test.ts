import { createConnection } from 'node:net'
import { Client } from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type FaultProxy, startFaultProxy } from './fault-proxy.ts'
import { freshDatabase, psql, sharedServices } from './services.ts'

const shared = sharedServices()
const database = await freshDatabase(shared.postgres15, 'faultproxy')
let proxy: FaultProxy

async function connect(): Promise<Client> {
  const client = new Client({ connectionString: database.url.replace(`:${database.port}/`, `:${proxy.port}/`) })
  client.on('error', () => undefined)
  await client.connect()
  return client
}

beforeEach(async () => {
  await psql(database, 'DROP TABLE IF EXISTS t; CREATE TABLE t (a int)')
  proxy = await startFaultProxy(database)
})
afterEach(() => proxy.stop())

const rows = (): Promise<string> => psql(database, 'SELECT count(*) FROM t')

describe('TCP faults in front of PostgreSQL', () => {
  it('passes everything where nothing is armed, and counts it', async () => {
    const client = await connect()
    const answer = await client.query('SELECT repeat($1, 3000000) AS text', ['x'])
    expect(answer.rows[0].text.length).toBe(3_000_000)
    await client.end()
    await proxy.until((counters) => counters.open === 0)
    expect(proxy.counters.bytesFromServer).toBeGreaterThan(3_000_000)
    expect(proxy.counters).toMatchObject({ connections: 1, faults: 0 })
  })

  it('cuts before COMMIT: nothing is committed', async () => {
    const client = await connect()
    await client.query('BEGIN; INSERT INTO t VALUES (1)')
    proxy.add({ from: 'client', at: 'COMMIT', when: 'before', action: 'cut' })
    await expect(client.query('COMMIT')).rejects.toThrow()
    expect(proxy.counters.faults).toBe(1)
    expect(await rows()).toBe('0')
  })

  it('loses the answer to COMMIT: it is committed, and the client knows nothing', async () => {
    const client = await connect()
    await client.query('BEGIN; INSERT INTO t VALUES (1)')
    proxy.add({ from: 'client', at: 'COMMIT', action: 'lose-answer' })
    await expect(client.query('COMMIT')).rejects.toThrow()
    expect(await rows()).toBe('1')
  })

  it('finds a pattern that is split over chunks, and lets through what only looked like one', async () => {
    const client = await connect()
    proxy.add({ from: 'client', at: 'needle', when: 'before', action: 'cut' })
    expect((await client.query("SELECT 'need'")).rows).toHaveLength(1)
    const raw = createConnection(proxy.port, proxy.host)
    raw.on('error', () => undefined)
    const closed = new Promise((resolve) => raw.once('close', resolve))
    raw.setNoDelay(true)
    raw.write('nee')
    await new Promise((resolve) => setTimeout(resolve, 5))
    raw.write('dle')
    await closed
    expect(proxy.counters.faults).toBe(1)
    await client.end()
  })

  it('cuts after so many bytes of the server', async () => {
    const client = await connect()
    proxy.add({ from: 'server', afterBytes: 500_000, action: 'cut' })
    await expect(client.query("SELECT repeat('x', 3000000)")).rejects.toThrow()
    expect(proxy.counters.bytesFromServer).toBe(500_000)
  })

  it('refuses new connections while open ones go on, then accepts again', async () => {
    const client = await connect()
    await proxy.refuse()
    await expect(connect()).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    expect((await client.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }])
    await proxy.accept()
    const second = await connect()
    await Promise.all([client.end(), second.end()])
  })

  it('stalls a connection until it is cleared', async () => {
    const client = await connect()
    proxy.add({ from: 'server', action: 'stall' })
    let answered = false
    const query = client.query('SELECT 1 AS one').then((answer) => {
      answered = true
      return answer
    })
    await proxy.until((counters) => counters.faults === 1)
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect(answered).toBe(false)
    proxy.clear()
    expect((await query).rows).toEqual([{ one: 1 }])
    await client.end()
  })

  it('ends in order, and cuts all that is open', async () => {
    const client = await connect()
    const ended = new Promise((resolve) => client.once('end', resolve))
    proxy.add({ from: 'client', at: 'SELECT 2', when: 'before', action: 'end' })
    await expect(client.query('SELECT 2')).rejects.toThrow(/terminated/i)
    await ended
    const second = await connect()
    const gone = new Promise((resolve) => second.once('end', resolve))
    expect(proxy.cutAll()).toBeGreaterThanOrEqual(1)
    await gone
  })
})
