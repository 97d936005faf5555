import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { lookUpPassword } from '../../../../../src/connectors/postgres/connection/pgpass.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-pgpass-'))
afterAll(() => rmSync(folder, { recursive: true }))

function file(name: string, text: string, mode = 0o600): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  chmodSync(path, mode)
  return path
}

const query = { host: 'h', port: 5432, database: 'd', user: 'u' }

describe('lookUpPassword', () => {
  it('takes the first line that fits', () => {
    const path = file('a', '# h:5432:d:u:no\nh:5433:d:u:other port\n*:5432:d:u:yes\nh:5432:d:u:later\n')
    expect(lookUpPassword(path, query)).toEqual({ password: 'yes', problem: null })
  })

  it('unescapes colons and backslashes, and keeps raw colons of the password', () => {
    const path = file('b', 'a\\:b:*:*:*:p\\:q\\\\r:s\r\n')
    expect(lookUpPassword(path, { ...query, host: 'a:b' }).password).toBe('p:q\\r:s')
  })

  it('passes over a file that others may read, and says why', () => {
    const path = file('c', 'h:5432:d:u:p\n', 0o644)
    expect(lookUpPassword(path, query)).toMatchObject({
      password: null,
      problem: expect.stringContaining('chmod 0600'),
    })
  })

  it('finds nothing where there is no file, no fitting line, or a folder', () => {
    expect(lookUpPassword(join(folder, 'none'), query)).toEqual({ password: null, problem: null })
    expect(lookUpPassword(file('d', 'short:line\nx:5432:d:u:p\n'), query)).toEqual({ password: null, problem: null })
    expect(lookUpPassword(folder, query).problem).toContain('no plain file')
  })
})
