import { describe, expect, it } from 'vitest'
import { errorExitCode, jobExitCode } from '../../../src/cli/exit-code.ts'
import { ERROR_RULES, type ErrorCode, SluiceError } from '../../../src/core/errors.ts'
import { jobResult } from './job-result.ts'

const failed = (code: string, o: { rowsRead?: number; bytesWritten?: number; status?: 'failed' | 'stopped' } = {}) =>
  jobResult({ status: 'failed', ...o, error: { code, message: 'm', where: null, hint: '' } })

describe('exit code of a job', () => {
  it('is 0 when done and 3 with rejects, even where a signal came late', () => {
    expect(jobExitCode(jobResult({ status: 'done' }), null)).toBe(0)
    expect(jobExitCode(jobResult({ status: 'done' }), 'SIGINT')).toBe(0)
    expect(jobExitCode(jobResult({ status: 'done-with-rejects' }), null)).toBe(3)
  })

  it('is 4 when stopped, 130 or 143 when a signal stopped it', () => {
    expect(jobExitCode(failed('SLUICE_NETWORK', { status: 'stopped' }), null)).toBe(4)
    expect(jobExitCode(failed('SLUICE_INTERRUPTED', { status: 'stopped' }), 'SIGINT')).toBe(130)
    expect(jobExitCode(failed('SLUICE_INTERRUPTED', { status: 'stopped' }), 'SIGTERM')).toBe(143)
    expect(jobExitCode(failed('SLUICE_NETWORK', { status: 'stopped' }), 'SIGTERM')).toBe(4)
  })

  it('is 2 for what was found before anything moved, and 1 after', () => {
    expect(jobExitCode(failed('SLUICE_NOT_FOUND'), null)).toBe(2)
    expect(jobExitCode(failed('SLUICE_UNREACHABLE'), null)).toBe(2)
    expect(jobExitCode(failed('SLUICE_NOT_FOUND', { rowsRead: 1 }), null)).toBe(1)
    expect(jobExitCode(failed('SLUICE_ACCESS_DENIED', { bytesWritten: 1 }), null)).toBe(1)
  })

  it('is 1 for bad input and for a code that nobody knows', () => {
    expect(jobExitCode(failed('SLUICE_VALUE'), null)).toBe(1)
    expect(jobExitCode(failed('SLUICE_FROM_THE_FUTURE'), null)).toBe(1)
  })
})

describe('exit code of an error before a job', () => {
  it.each(Object.keys(ERROR_RULES) as ErrorCode[])('%s', (code) => {
    const expected = { usage: 2, failed: 1, resumable: 4 }[ERROR_RULES[code].before]
    expect(errorExitCode(new SluiceError(code, 'm'), null)).toBe(expected)
  })

  it("is the signal's where that was the reason", () => {
    expect(errorExitCode(new SluiceError('SLUICE_INTERRUPTED', 'm'), 'SIGTERM')).toBe(143)
    expect(errorExitCode(new SluiceError('SLUICE_USAGE', 'm'), 'SIGTERM')).toBe(2)
  })
})
