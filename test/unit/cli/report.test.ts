import { describe, expect, it } from 'vitest'
import { shownCommand } from '../../../src/cli/commands/demo.ts'
import { renderOutcomes } from '../../../src/cli/demo/outcomes.ts'
import { renderError, renderSummary, reportedError } from '../../../src/cli/report.ts'
import { createStyle, wantsColor } from '../../../src/cli/style.ts'
import { printable, renderTable } from '../../../src/cli/table.ts'
import { SluiceError } from '../../../src/core/errors.ts'
import { jobResult } from './job-result.ts'

const style = createStyle(false)

describe('renderError', () => {
  it('says what, where and what to do', () => {
    const error = new SluiceError('SLUICE_CSV_UNTERMINATED_QUOTE', 'unterminated quoted field', {
      where: { url: 's3://b/k.csv', row: 1042, byte: 88123, partition: '7/64' },
      hint: 'check --quote',
    })
    expect(renderError(reportedError(error), style)).toBe(
      [
        'error: unterminated quoted field  [SLUICE_CSV_UNTERMINATED_QUOTE]',
        '   at: s3://b/k.csv row 1042 (byte 88123), partition 7/64',
        ' hint: check --quote',
      ].join('\n'),
    )
  })

  it('leaves out a place and a hint that are not there, and never passes on a terminal escape of the data', () => {
    const error = { code: 'SLUICE_VALUE', message: 'bad \u001b[2J value', where: null, hint: '' }
    expect(renderError(error, style)).toBe(String.raw`error: bad \x1b[2J value  [SLUICE_VALUE]`)
  })
})

describe('renderSummary', () => {
  it('has the counts, the effort and the job', () => {
    const result = jobResult({
      rowsRead: 1_000_010,
      rowsWritten: 1_000_000,
      rowsSkipped: 10,
      skipped: { filtered: 10, superseded: 0, existing: 0 },
      bytesRead: 20_000_000,
      retries: 1,
      wallMs: 2000,
    })
    expect(renderSummary(result, style)).toBe(
      [
        'done  1,000,000 rows in 2.0s (500k rows/s, 9.5 MiB/s)',
        '  source   s3://b/people.csv (19.1 MiB read)',
        '  sink     postgres://u@h/db?table=people (0 B written)',
        '  rows     1,000,010 read, 1,000,000 written, 10 skipped (10 filtered)',
        '  effort   0.10s of CPU, 100.0 MiB at the peak, 1 retry',
        '  job      j1',
      ].join('\n'),
    )
  })

  it('tells no rows as no rows, and no bytes as no bytes', () => {
    const first = (route: string): string | undefined => renderSummary(jobResult({ route }), style).split('\n')[0]
    expect(first('file → PostgreSQL')).toBe('done  0 rows in 1.0s (0 rows/s, 0 B/s)')
    expect(first('bytes')).toBe('done  0 B in 1.0s (0 B/s)')
  })

  it('counts bytes where there are no rows, and shows ten outputs at most', () => {
    const outputs = Array.from({ length: 12 }, (_, i) => ({ url: `s3://b/${i}`, rows: null, bytes: 1, etag: null }))
    const text = renderSummary(
      jobResult({
        route: 'bytes',
        bytesRead: 12,
        bytesWritten: 12,
        outputs,
        status: 'stopped',
        resumeCommand: 'sluice resume j1',
      }),
      style,
    )
    expect(text).toContain('stopped  after 1.0s')
    expect(text.match(/^ {2}output/gm)).toHaveLength(10)
    expect(text).toContain('and 2 more')
    expect(text).toContain('resume   sluice resume j1')
  })
})

describe('renderTable', () => {
  it('aligns, cuts and keeps control characters of data away from the terminal', () => {
    expect(
      renderTable(
        [{ title: 'name' }, { title: 'n', right: true }],
        [
          ['a\u0007\n', '1'],
          ['longer than ten', '22'],
        ],
        10,
      ),
    ).toEqual(['name         n', String.raw`a\x07\n      1`, 'longer th…  22'])
    expect(printable('\u009b31m\u007f\t')).toBe(String.raw`\x9b31m\x7f\t`)
  })
})

describe('renderOutcomes', () => {
  const outcomes = [
    { title: 'file → S3', result: jobResult({ bytesRead: 1024, bytesWritten: 1024 }), verified: true },
    {
      title: 'S3 → PostgreSQL',
      result: jobResult({ rowsWritten: 1_500_000, bytesWritten: 2048, bytesRead: 21.8 * 1024 * 1024, retries: 2 }),
      verified: false,
    },
  ]

  it('is one row a job', () => {
    const lines = renderOutcomes(outcomes, style)
    expect(lines).toHaveLength(4)
    expect(lines[2]).toMatch(/^file → S3 .* – .*yes$/)
    expect(lines[3]).toMatch(/^S3 → PostgreSQL +1,500,000 .* 2 .*NO$/)
  })

  it('fits a narrow terminal: without size and speed, then two lines more a job; the same words in colour', () => {
    const widest = (width: number): number => Math.max(...renderOutcomes(outcomes, style, width).map((x) => x.length))
    for (const width of [200, 120, 90, 80, 60, 40]) expect(widest(width)).toBeLessThanOrEqual(width)
    const at80 = renderOutcomes(outcomes, style, 80)
    expect(at80[0]?.trim().split(/ {2,}/)).toEqual([
      'job',
      'rows',
      'time',
      'rows/s',
      'retries',
      'peak memory',
      'verified',
    ])
    expect(renderOutcomes(outcomes, style, 40).join('\n')).toBe(
      [
        'file → S3  verified',
        '  1.0 KiB in 1.0s, 1.0 KiB/s',
        '  0 retries, 100.0 MiB at the peak',
        'S3 → PostgreSQL  NOT verified',
        '  1,500,000 rows in 1.0s, 1.5M rows/s',
        '  2 retries, 100.0 MiB at the peak',
      ].join('\n'),
    )
    for (const width of [120, 80, 40]) {
      const colours = renderOutcomes(outcomes, createStyle(true), width).join('\n')
      expect(colours).toContain('\u001b[')
      // eslint-disable-next-line no-control-regex
      expect(colours.replace(/\u001b\[\d+m/g, '')).toBe(renderOutcomes(outcomes, style, width).join('\n'))
    }
  })
})

describe('shownCommand', () => {
  it('leaves a short command on its line, and breaks a long one before a flag, each word quoted', () => {
    expect(shownCommand(['sluice', 'copy', 'a.csv', 's3://b/a.csv'])).toEqual(['sluice copy a.csv s3://b/a.csv'])
    const lines = shownCommand(['sluice', 'copy', 'x'.repeat(90), '--replace', 'postcode=/ //', '--type', 'a=number'])
    expect(lines).toEqual([`sluice copy ${'x'.repeat(90)}`, "--replace 'postcode=/ //' --type a=number"])
  })
})

describe('wantsColor', () => {
  it('goes by flag, NO_COLOR, FORCE_COLOR, terminal', () => {
    const ask = (flag: boolean | undefined, env: Record<string, string>, isTerminal: boolean) =>
      wantsColor({ flag, env, isTerminal })
    expect(ask(false, { FORCE_COLOR: '1' }, true)).toBe(false)
    expect(ask(undefined, { NO_COLOR: '1', FORCE_COLOR: '1' }, true)).toBe(false)
    expect(ask(undefined, { NO_COLOR: '' }, true)).toBe(true)
    expect(ask(undefined, { FORCE_COLOR: '1' }, false)).toBe(true)
    expect(ask(undefined, { FORCE_COLOR: '0' }, true)).toBe(false)
    expect(ask(undefined, { TERM: 'dumb' }, true)).toBe(false)
    expect(ask(undefined, {}, false)).toBe(false)
  })
})
