import { describe, expect, it } from 'vitest'
import { SluiceError } from '../../../../src/core/errors.ts'
import { sqlState, translatePgError, whileReading } from '../../../../src/connectors/postgres/errors.ts'

const server = (code: string, fields: object = {}) =>
  Object.assign(new Error('Meldung des Servers'), { code, severity: 'FEHLER', ...fields })
const node = (code: string) => Object.assign(new Error(code), { code })
const translate = (error: unknown, rowsMoved = false) => translatePgError(error, { while: 'loading into t', rowsMoved })

describe('translatePgError', () => {
  it.each([
    ['28P01', 'SLUICE_CREDENTIALS'], ['28000', 'SLUICE_CREDENTIALS'], ['3D000', 'SLUICE_NOT_FOUND'], ['42P01', 'SLUICE_NOT_FOUND'], ['3F000', 'SLUICE_NOT_FOUND'],
    ['42501', 'SLUICE_ACCESS_DENIED'], ['25006', 'SLUICE_ACCESS_DENIED'], ['53100', 'SLUICE_DISK_FULL'], ['53300', 'SLUICE_THROTTLED'],
    ['57P01', 'SLUICE_SERVER_GONE'], ['57P03', 'SLUICE_SERVER_GONE'], ['08006', 'SLUICE_SERVER_GONE'], ['08P01', 'SLUICE_PROTOCOL'], ['57014', 'SLUICE_SERVER'],
    ['23505', 'SLUICE_DUPLICATE_KEY'], ['23502', 'SLUICE_CONSTRAINT'], ['23503', 'SLUICE_CONSTRAINT'], ['22P02', 'SLUICE_VALUE'], ['22001', 'SLUICE_VALUE'],
    ['22P04', 'SLUICE_CSV_FIELD_COUNT'], ['22021', 'SLUICE_ENCODING'], ['40001', 'SLUICE_LOCKED'], ['40P01', 'SLUICE_LOCKED'], ['55P03', 'SLUICE_LOCKED'],
    ['P0001', 'SLUICE_CONSTRAINT'], ['42601', 'SLUICE_SQL'], ['42703', 'SLUICE_COLUMN_MISSING'], ['428C9', 'SLUICE_COLUMN_GENERATED'], ['XX000', 'SLUICE_SERVER'], ['ZZ999', 'SLUICE_SQL'],
  ])('%s is %s, in any language', (state, code) => {
    const error = translate(server(state))
    expect(error.code).toBe(code)
    expect(error.message).toContain(state)
    expect(sqlState(error)).toBe(state)
  }) // prettier-ignore

  it.each([
    ['ECONNREFUSED', 'SLUICE_UNREACHABLE'], ['ENOTFOUND', 'SLUICE_NOT_FOUND'], ['ECONNRESET', 'SLUICE_SERVER_GONE'], ['EPIPE', 'SLUICE_SERVER_GONE'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'SLUICE_TLS'], ['SELF_SIGNED_CERT_IN_CHAIN', 'SLUICE_TLS'], ['CERT_HAS_EXPIRED', 'SLUICE_TLS'],
  ])('%s is %s', (code, expected) => {
    expect(translate(node(code)).code).toBe(expected)
  }) // prettier-ignore

  it('calls a refused connection a lost server once rows have moved', () => {
    expect(translate(node('ECONNREFUSED'), true).code).toBe('SLUICE_SERVER_GONE')
  })

  it('takes plain errors of pg for a lost connection, faults for faults', () => {
    expect(translate(new Error('Connection terminated unexpectedly')).code).toBe('SLUICE_SERVER_GONE')
    expect(translate(new TypeError('x is undefined')).code).toBe('SLUICE_INTERNAL')
  })

  it('names column, constraint and the GRANT, and cuts long details', () => {
    const duplicate = translate(
      server('23505', { column: 'id', constraint: 't_pkey', table: 't', detail: `Key (id)=(${'9'.repeat(500)})` }),
    )
    expect(duplicate.where.column).toBe('id')
    expect(duplicate.hint).toContain('t_pkey')
    expect(duplicate.message.length).toBeLessThan(300)
    expect(translate(server('42501', { schema: 's', table: 't' })).hint).toContain('GRANT INSERT, SELECT ON s.t')
  })

  it('does not retry a cancelled statement', () => {
    expect(translate(server('57014')).retryable).toBe(false)
    expect(translate(server('40001')).retryable).toBe(true)
  })

  it('leaves a SluiceError alone', () => {
    const error = new SluiceError('SLUICE_USAGE', 'x')
    expect(translate(error)).toBe(error)
  })
})

describe('whileReading', () => {
  it("blames a table's own bytes, which are no UTF-8, and says how to read them", () => {
    for (const state of ['22021', '22P05']) {
      const error = whileReading(server(state), 'reading t')
      expect(error).toMatchObject({ code: 'SLUICE_ENCODING', message: expect.stringContaining('reading t') as unknown })
      expect(error.hint).toContain('convert_from')
    }
    expect(whileReading(server('22012'), 'the query')).toMatchObject({ code: 'SLUICE_SQL' })
  })
})
