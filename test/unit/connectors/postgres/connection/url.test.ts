import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { SluiceError, type ErrorCode } from '../../../../../src/core/errors.ts'
import { isPostgresUrl, parsePostgresUrl } from '../../../../../src/connectors/postgres/connection/url.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-url-'))
afterAll(() => rmSync(folder, { recursive: true }))

const parse = (url: string, env: Record<string, string> = {}) => parsePostgresUrl(url, env)

function failure(url: string, env: Record<string, string> = {}): SluiceError {
  try {
    parse(url, env)
  } catch (error) {
    if (error instanceof SluiceError) return error
    throw error
  }
  throw new Error(`${url} was taken`)
}

function codeOf(url: string, env: Record<string, string> = {}): ErrorCode {
  return failure(url, env).code
}

describe('parsePostgresUrl', () => {
  it('reads user, password, host, port, database', () => {
    const target = parse('postgresql://me%40x:p%3Aw%2F@db.example:6000/sales')
    expect(target).toMatchObject({
      user: 'me@x',
      database: 'sales',
      hosts: [{ host: 'db.example', address: null, port: 6000 }],
    })
    expect(target.password).toBe('p:w/')
  })

  it('keeps secrets out of JSON and of the shown URL', () => {
    const target = parse('postgres://me:hush@h/d?sslpassword=hush2&table=t')
    expect(JSON.stringify(target)).not.toContain('hush')
    expect(target.url).toBe('postgres://me@h:5432/d?table=t')
    expect(target.keyPassword).toBe('hush2')
  })

  it('takes several hosts, IPv6, one port for all', () => {
    expect(parse('postgres://u@h1:5433,[::1]:5434,h3/d').hosts).toEqual([
      { host: 'h1', address: null, port: 5433 },
      { host: '::1', address: null, port: 5434 },
      { host: 'h3', address: null, port: 5432 },
    ])
    expect(parse('postgres://u@h1,h2/d?port=7000').hosts.map((host) => host.port)).toEqual([7000, 7000])
  })

  it('takes a socket folder by host= and percent-encoded', () => {
    expect(parse('postgres:///d?host=/var/run&user=u').hosts[0]).toEqual({
      host: '/var/run',
      address: null,
      port: 5432,
    })
    expect(parse('postgres://u@%2Fvar%2Frun/d').hosts[0]?.host).toBe('/var/run')
  })

  it('takes hostaddr beside host', () => {
    expect(parse('postgres://u@db.example/d?hostaddr=10.0.0.1').hosts[0]).toEqual({
      host: 'db.example',
      address: '10.0.0.1',
      port: 5432,
    })
  })

  it('fills in from the PG variables that are handed in, the URL first', () => {
    const env = {
      PGHOST: 'e',
      PGPORT: '1234',
      PGUSER: 'eu',
      PGPASSWORD: 'ep',
      PGDATABASE: 'ed',
      PGAPPNAME: 'app',
      PGCONNECT_TIMEOUT: '7',
      PGOPTIONS: '-c x=1',
    }
    const target = parse('postgres:///', env)
    expect(target).toMatchObject({
      user: 'eu',
      database: 'ed',
      applicationName: 'app',
      connectTimeoutMs: 7000,
      options: '-c x=1',
    })
    expect(target.hosts[0]).toMatchObject({ host: 'e', port: 1234 })
    expect(target.password).toBe('ep')
    expect(parse('postgres://u:p@h/d', env)).toMatchObject({ user: 'u', database: 'd' })
  })

  it('does not look into the process’s own environment', () => {
    process.env['PGDATABASE'] = 'from-process'
    try {
      expect(parse('postgres://u@h').database).toBe('u')
    } finally {
      delete process.env['PGDATABASE']
    }
  })

  it('obeys a service file, between URL and variables', () => {
    const file = join(folder, 'service.conf')
    writeFileSync(
      file,
      '# comment\n[other]\nhost=no\n\n[mine]\nhost=s1,s2\nport=5555\ndbname=sdb\nuser=su\n[mine2]\nhost=x\n',
    )
    const target = parse('postgres://?service=mine&user=u', { PGSERVICEFILE: file, PGDATABASE: 'env' })
    expect(target).toMatchObject({ user: 'u', database: 'sdb' })
    expect(target.hosts.map(({ host, port }) => `${host}:${port}`)).toEqual(['s1:5555', 's2:5555'])
    expect(codeOf('postgres://?service=none', { PGSERVICEFILE: file })).toBe('SLUICE_NOT_FOUND')
  })

  it.each([
    ['t', { schema: null, table: { name: 't', literal: false } }],
    ['S.T', { schema: { name: 'S', literal: false }, table: { name: 'T', literal: false } }],
    ['"Mixed".name', { schema: { name: 'Mixed', literal: true }, table: { name: 'name', literal: false } }],
    ['"a.b"."c""d"', { schema: { name: 'a.b', literal: true }, table: { name: 'c"d', literal: true } }],
  ])('reads table=%s by the rules of SQL', (table, expected) => {
    expect(parse(`postgres://u@h/d?table=${encodeURIComponent(table)}`).table).toEqual(expected)
  })

  it('takes schema= and table= apart literally', () => {
    expect(parse('postgres://u@h/d?schema=A.b&table=C.d').table).toEqual({
      schema: { name: 'A.b', literal: true },
      table: { name: 'C.d', literal: true },
    })
  })

  it.each(['a.b.c', '"open', '.x', 'a.', '""'])('refuses table=%s', (table) => {
    expect(codeOf(`postgres://u@h/d?table=${encodeURIComponent(table)}`)).toBe('SLUICE_USAGE')
  })

  it('names the nearest known parameter', () => {
    expect(failure('postgres://u@h/d?sslmod=require')).toMatchObject({
      code: 'SLUICE_USAGE',
      hint: 'did you mean sslmode?',
    })
    expect(failure('postgres://u@h/d?sslmode=requre')).toMatchObject({
      code: 'SLUICE_USAGE',
      hint: 'did you mean require?',
    })
  })

  it('refuses what it would otherwise silently not do', () => {
    for (const parameter of [
      'require_auth=scram-sha-256',
      'sslcrl=x',
      'gssencmode=require',
      'channel_binding=require',
    ]) {
      expect(codeOf(`postgres://u@h/d?${parameter}`)).toBe('SLUICE_NOT_YET')
    }
    expect(codeOf('postgres://u@h/d', { PGREQUIREPEER: 'x' })).toBe('SLUICE_NOT_YET')
  })

  it.each([
    'postgres://u@h:x/d',
    'postgres://u@h:70000/d',
    'postgres://u%zz@h/d',
    'postgres://u@h1,h2/d?port=1,2,3',
    'postgres://u@h/d?connect_timeout=soon',
    'mysql://u@h/d',
  ])('refuses %s', (url) => {
    expect(codeOf(url)).toBe('SLUICE_USAGE')
  })

  it('does not show a password with a raw slash', () => {
    const error = failure('postgres://me:hu/sh@h/d')
    expect(`${error.message} ${error.hint}`).not.toContain('hu')
    expect(error.hint).toContain('percent-encode')
  })

  it('follows libpq in what sslmode means', () => {
    expect(parse('postgres://u@h/d').tls.mode).toBe('prefer')
    expect(parse('postgres://u@h/d?sslmode=require&sslrootcert=/ca.pem').tls.mode).toBe('verify-ca')
    expect(parse('postgres://u@h/d?sslrootcert=system').tls.mode).toBe('verify-full')
    expect(codeOf('postgres://u@h/d?sslrootcert=system&sslmode=require')).toBe('SLUICE_USAGE')
    expect(codeOf('postgres://u@h/d?sslmode=verify-full')).toBe('SLUICE_TLS')
    expect(codeOf('postgres://u@h/d?sslnegotiation=direct')).toBe('SLUICE_USAGE')
  })

  it('knows its schemes', () => {
    expect(['postgres://x', 'PostgreSQL://x', 's3://x'].map(isPostgresUrl)).toEqual([true, true, false])
  })
})
