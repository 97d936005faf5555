import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { until } from './bytes-place.ts'
import { ended, startCli } from './cli-process.ts'
import { loadHarness, ROWS } from './load-harness.ts'

const h = loadHarness()

async function killWhen(words: readonly string[], ready: () => Promise<unknown>): Promise<void> {
  const child = startCli(words, h.options())
  const end = ended(child)
  await ready()
  child.kill('SIGKILL')
  await end
  h.proxy.cutAll()
  h.proxy.clear()
}

async function expectNothingOfOurs(): Promise<void> {
  await h.settled()
  expect(
    await h.server.psql(
      `SELECT count(*) FROM pg_class WHERE relname NOT LIKE 'pg\\_%' AND relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace, 'pg_toast'::regnamespace)`,
    ),
  ).toBe('1')
}

describe('--after-sql, killed at its COMMIT and resumed, is run once', () => {
  it.each(['before', 'after'] as const)('stalled %s the server has it', async (when) => {
    await h.server.psql('CREATE TABLE told (n int)')
    // The main connection is the first of a run, and commits nothing else.
    const connection = h.proxy.counters.connections + 1
    h.proxy.add({ from: 'client', at: 'COMMIT\0', when, action: 'stall', connection })
    const faults = h.proxy.counters.faults
    await killWhen(h.load('--after-sql', 'INSERT INTO told VALUES (1)'), () => h.proxy.until((c) => c.faults > faults))
    await h.settled()
    expect(await h.server.psql('SELECT count(*) FROM told')).toBe(when === 'before' ? '0' : '1')
    await h.resumeIsWhole(await h.onlyJob())
    expect(await h.server.psql('SELECT count(*) FROM told')).toBe('1')
    await h.server.psql('DROP TABLE told')
  })
})

describe('--commit job, killed and resumed', () => {
  it.each([1, 2, 3])('at COMMIT %d of 3, which never arrives', async (k) => {
    const seen = h.proxy.counters.connections
    // The main connection is the first of a run. Which lane is committed when is not said: the first COMMIT is that of any.
    const rule = { from: 'client', at: 'COMMIT\0', when: 'before', action: 'stall' } as const
    h.proxy.add(k === 1 ? rule : { ...rule, connection: seen + 1 + k })
    const faults = h.proxy.counters.faults
    await killWhen(h.load(), () => h.proxy.until((c) => c.faults > faults))
    await h.settled()
    const before = Number(await h.server.psql('SELECT count(*) FROM t'))
    expect(k === 1 ? before === 0 : before < ROWS).toBe(true)
    await h.resumeIsWhole(await h.onlyJob())
    await expectNothingOfOurs()
  })

  it.each([1, 2, 3])('at COMMIT %d of 3, whose answer never arrives', async (k) => {
    const seen = h.proxy.counters.connections
    h.proxy.add({ from: 'client', at: 'COMMIT\0', when: 'after', action: 'stall', connection: seen + 1 + k })
    const faults = h.proxy.counters.faults
    await killWhen(h.load(), () => h.proxy.until((c) => c.faults > faults))
    await h.resumeIsWhole(await h.onlyJob())
    await expectNothingOfOurs()
  })

  it('at ten moments', async () => {
    for (let round = 0; round < 10; round += 1) {
      rmSync(join(h.place, 'state'), { recursive: true, force: true })
      await h.server.psql('TRUNCATE t')
      await killWhen(h.load(), () => delay(150 + round * 110))
      const id = await h.onlyJob()
      if (id === '') continue
      const { code, stderr } = await h.run(['resume', id, '--json'])
      expect({ round, code, stderr: code === 0 ? '' : stderr }).toEqual({ round, code: 0, stderr: '' })
      await h.expectOnce()
    }
  })
})

describe('--commit job, a COMMIT whose answer is lost', () => {
  it.each(['before', 'after'] as const)('%s it arrived: the job asks, and goes on', async (when) => {
    const seen = h.proxy.counters.connections
    h.proxy.add({
      from: 'client',
      at: 'COMMIT\0',
      when,
      action: when === 'after' ? 'lose-answer' : 'cut',
      connection: seen + 3,
    })
    const { code, stderr } = await h.run(h.load())
    expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' })
    await h.expectOnce()
    await expectNothingOfOurs()
  })
})

describe('--commit partition, killed and resumed', () => {
  const ledger = () => h.load('--commit', 'partition')

  it('at ten moments; what is committed is not written again', async () => {
    for (let round = 0; round < 10; round += 1) {
      rmSync(join(h.place, 'state'), { recursive: true, force: true })
      await h.server.psql('TRUNCATE t')
      await h.server.psql('DROP SCHEMA IF EXISTS sluice CASCADE')
      await killWhen(ledger(), () => delay(150 + round * 110))
      await h.settled()
      const id = await h.onlyJob()
      if (id === '') continue
      await h.server.psql(`CREATE TABLE was AS SELECT xmin::text AS xid, count(*) FROM t GROUP BY 1`)
      const { code, stderr } = await h.run(['resume', id, '--json'])
      expect({ round, code, stderr: code === 0 ? '' : stderr }).toEqual({ round, code: 0, stderr: '' })
      await h.expectOnce()
      const again = `SELECT count(*) FROM was WHERE count <> (SELECT count(*) FROM t WHERE xmin::text = was.xid)`
      expect(await h.server.psql(again)).toBe('0')
      await h.server.psql('DROP TABLE was')
    }
  })

  it('after the last COMMIT, before the result is written', async () => {
    // The server's answer to what ends the job in the ledger.
    h.proxy.add({ from: 'server', at: 'UPDATE 1\0', when: 'before', action: 'stall' })
    const faults = h.proxy.counters.faults
    await killWhen(ledger(), async () => {
      await h.proxy.until((c) => c.faults > faults)
      await until(async () => (await h.server.psql(`SELECT state FROM sluice.jobs`)) === 'done')
    })
    expect((await h.resumeIsWhole(await h.onlyJob())).bytesWritten).toBeGreaterThan(0)
  })

  it('from another machine, which has no state folder', async () => {
    h.proxy.setRate(12_000_000)
    await killWhen(ledger(), () =>
      until(async () => (await h.server.psql('SELECT count(*) FROM t').catch(() => '0')) !== '0'),
    )
    const id = await h.onlyJob()
    const state = join(h.place, 'elsewhere')
    const refused = await h.run([...ledger(), '--state-dir', state])
    expect(refused.code).toBe(2)
    expect(refused.stderr).toContain('[SLUICE_JOB_EXISTS]')
    expect(refused.stderr).toContain(id)
    const { code, stderr } = await h.run([...ledger(), '--state-dir', state, '--job-id', id, '--resume'])
    expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' })
    await h.expectOnce()
    // Done is done, from wherever it is asked.
    const again = await h.run([...ledger(), '--state-dir', join(h.place, 'third'), '--job-id', id, '--resume'])
    expect(again.code).toBe(0)
    await h.expectOnce()
  })
})

describe('a server that goes away in mid-load', () => {
  const started = (n: number) => () => h.proxy.counters.bytesFromClient > n

  it('and comes back: retried, each row once', async () => {
    h.proxy.setRate(20_000_000)
    const seen = h.proxy.counters.bytesFromClient
    const job = h.run(h.load('--retry-for', '1m'))
    await until(started(seen + 8_000_000))
    await h.server.kill()
    await delay(2000)
    await h.server.restart()
    h.proxy.setRate(null)
    const { code, stderr, result } = await job
    expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' })
    expect(result.retries).toBeGreaterThan(0)
    await h.expectOnce()
  })

  it('and stays away: 4 with the command to resume', async () => {
    h.proxy.setRate(20_000_000)
    const seen = h.proxy.counters.bytesFromClient
    const job = h.run(h.load('--retry-for', '5s'))
    await until(started(seen + 8_000_000))
    await h.server.kill()
    const { code, result } = await job
    await h.server.restart()
    expect({ code, status: result.status }).toEqual({ code: 4, status: 'stopped' })
    expect(result.resumeCommand).toBe(`sluice resume ${result.jobId}`)
    expect(await h.server.psql('SELECT count(*) FROM t')).toBe('0')
    h.proxy.setRate(null)
    await h.resumeIsWhole(result.jobId)
  })

  it('for one lane only: retried, each row once', async () => {
    h.proxy.setRate(20_000_000)
    const seen = h.proxy.counters.bytesFromClient
    const job = h.run(h.load())
    await until(started(seen + 8_000_000))
    await h.server.psql(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'sluice %' AND query LIKE 'COPY%' LIMIT 1`,
    )
    h.proxy.setRate(null)
    const { code, stderr } = await job
    expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' })
    await h.expectOnce()
  })
})
