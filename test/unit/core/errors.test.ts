import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ERROR_RULES, formatPlace, SluiceError, toSluiceError } from '../../../src/core/errors.ts'

const src = new URL('../../../src', import.meta.url).pathname
const sources = readdirSync(src, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts') && name !== join('core', 'errors.ts'))
  .map((name) => readFileSync(join(src, name), 'utf8'))
  .join('\n')

describe('ERROR_RULES', () => {
  it.each(Object.entries(ERROR_RULES))('%s says what it means and what to do, without an end mark', (code, rule) => {
    expect(code).toMatch(/^SLUICE_[A-Z0-9_]+$/)
    expect(rule.meaning).toMatch(/^.{8,}[^.\s]$/)
    expect(rule.hint).toMatch(/^.{8,}[^.\s]$/)
  })

  it('has no code that nothing ever throws', () => {
    expect(Object.keys(ERROR_RULES).filter((code) => !sources.includes(code))).toEqual([])
  })

  it('lets every error that may be tried again be resumed', () => {
    const rules = Object.values(ERROR_RULES)
    expect(rules.filter((rule) => rule.retryable && rule.during !== 'resumable')).toEqual([])
  })
})

describe('SluiceError', () => {
  it('never prints a name of megabytes', () => {
    const name = 'h'.repeat(10_000_000)
    const error = new SluiceError('SLUICE_COLUMN_MISSING', `no column "${name}"`, { hint: `--select ${name}` })
    const said = [error.message, error.hint, error.at({ column: name }).message, formatPlace({ column: name })]
    for (const text of said) expect(text).toHaveLength(4001)
  })

  it('takes hint and retryability from the table, unless the throw site knows better', () => {
    const plain = new SluiceError('SLUICE_NETWORK', 'gone')
    expect(plain).toMatchObject({
      name: 'SluiceError',
      hint: ERROR_RULES.SLUICE_NETWORK.hint,
      retryable: true,
      where: {},
    })
    const own = new SluiceError('SLUICE_NETWORK', 'gone', { hint: 'pray', retryable: false, retryAfterMs: 7 })
    expect(own).toMatchObject({ hint: 'pray', retryable: false, retryAfterMs: 7 })
  })

  it('fills in the place with at, keeping what is known already, the cause and the stack', () => {
    const cause = new Error('root')
    const inner = new SluiceError('SLUICE_VALUE', 'bad', {
      where: { row: 3, url: undefined },
      cause,
      hint: 'h',
      retryAfterMs: 5,
      retryable: true,
    })
    const outer = inner.at({ row: 9, url: 'a.csv', column: 'age' })
    expect(outer).toMatchObject({
      code: 'SLUICE_VALUE',
      message: 'bad',
      where: { row: 3, url: 'a.csv', column: 'age' },
      hint: 'h',
      retryAfterMs: 5,
      retryable: true,
    })
    expect(outer.cause).toBe(cause)
    expect(outer.stack).toBe(inner.stack)
  })

  it('has no cause where none was given, even after at', () => {
    expect('cause' in new SluiceError('SLUICE_VALUE', 'bad').at({ row: 1 })).toBe(false)
  })

  it('tells the exit class before and after rows moved', () => {
    const error = new SluiceError('SLUICE_NETWORK', 'gone')
    expect([error.exitClass(false), error.exitClass(true)]).toEqual(['usage', 'resumable'])
  })

  it('keeps a SluiceError and wraps what is none', () => {
    const own = new SluiceError('SLUICE_JSON', 'x')
    expect(toSluiceError(own)).toBe(own)
    const foreign = new TypeError('x is not a function')
    expect(toSluiceError(foreign)).toMatchObject({
      code: 'SLUICE_INTERNAL',
      message: 'x is not a function',
      cause: foreign,
    })
    expect(toSluiceError('text').message).toBe('text')
    const many = Object.assign(new Error('EMFILE: too many open files, open …'), { code: 'EMFILE' })
    expect(toSluiceError(many)).toMatchObject({
      code: 'SLUICE_LOCAL_IO',
      hint: expect.stringContaining('ulimit') as string,
    })
    expect(toSluiceError(undefined).code).toBe('SLUICE_INTERNAL')
  })
})

describe('formatPlace', () => {
  it.each([
    [{}, ''],
    [{ url: 's3://b/k.csv' }, 's3://b/k.csv'],
    [
      { url: 's3://b/k.csv', row: 1042, byte: 88_123, partition: '7/64' },
      's3://b/k.csv row 1042 (byte 88123), partition 7/64',
    ],
    [{ url: 'a.csv', row: 2, line: 3, byte: 10, column: 'age' }, 'a.csv row 2 (line 3, byte 10), column age'],
    [{ line: 3, byte: 0 }, 'line 3, byte 0'],
    [{ row: 1 }, 'row 1'],
    [{ column: 'age' }, 'column age'],
    [{ partition: 'p' }, 'partition p'],
  ])('%j', (place, text) => {
    expect(formatPlace(place)).toBe(text)
  })
})
