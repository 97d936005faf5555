import { describe, expect, it } from 'vitest'
import { renderDev } from '../../../src/cli/commands/dev.ts'
import { renderInspect } from '../../../src/cli/commands/inspect.ts'
import { renderJobs } from '../../../src/cli/commands/jobs.ts'
import { renderObject } from '../../../src/cli/commands/ls.ts'
import { renderPlan } from '../../../src/cli/commands/plan.ts'
import { renderJob } from '../../../src/cli/commands/show.ts'
import { renderVerify } from '../../../src/cli/commands/verify.ts'
import { createStyle } from '../../../src/cli/style.ts'
import type { InspectResult, JobDetail, PlanResult } from '../../../src/index.ts'
import { jobResult } from './job-result.ts'

const style = createStyle(false)

describe('plan', () => {
  const plan: PlanResult = {
    source: 's3://b/p/',
    sink: 'postgres://u@h/db?table=t',
    route: 'csv → COPY',
    routeReason: 'names match',
    partitions: [
      { id: 'a', url: 's3://b/p/a.csv', bytes: 1024 },
      { id: 'b', url: 's3://b/p/b.csv', bytes: 2048 },
    ],
    lanes: 2,
    partBytes: null,
    parts: null,
    sql: ['CREATE TABLE t (\n  id integer\n)'],
    steps: ['CreateTable t'],
    columns: [
      { source: 'id', sink: 'id', type: 'integer' },
      { source: null, sink: 'loaded', type: null },
    ],
    warnings: ['look'],
  }

  it('shows partitions, lanes, columns, SQL, steps and warnings', () => {
    expect(renderPlan(plan, style)).toBe(
      [
        'source  s3://b/p/ (2 partitions, 3.0 KiB)',
        'sink    postgres://u@h/db?table=t (2 lanes)',
        'route   csv → COPY: names match',
        '',
        'partitions',
        '  url                size',
        '  s3://b/p/a.csv  1.0 KiB',
        '  s3://b/p/b.csv  2.0 KiB',
        '',
        'columns',
        '  source      sink    type',
        '  id          id      integer',
        '  (constant)  loaded',
        '',
        'SQL',
        '  CREATE TABLE t (',
        '    id integer',
        '  );',
        '',
        'steps',
        '  CreateTable t',
        '',
        'warning: look',
      ].join('\n'),
    )
  })

  it('shows parts, and no total where a size is unknown', () => {
    const partitions = [{ id: 'a', url: '-', bytes: null }]
    const text = renderPlan(
      {
        ...plan,
        partitions,
        lanes: 1,
        partBytes: 8 * 1024 * 1024,
        parts: 3,
        columns: [],
        sql: [],
        steps: [],
        warnings: [],
      },
      style,
    )
    expect(text).toContain('source  s3://b/p/ (1 partition)\n')
    expect(text).toContain('(1 lane, 3 parts of 8.0 MiB)')
    expect(text.split('\n')).toHaveLength(3)
  })
})

describe('inspect', () => {
  const result: InspectResult = {
    url: 's3://b/people.csv.gz',
    format: 'csv',
    compression: 'gzip',
    bytes: 2048,
    partitions: [{ url: 's3://b/people.csv.gz', bytes: 2048 }],
    columns: [
      { name: 'id', type: 'integer' },
      { name: 'name', type: 'string' },
    ],
    sample: [
      ['1', 'Ada'],
      ['22', null],
    ],
    counts: { rows: 1234, exact: false },
    warnings: [],
  }

  it('shows what it is, columns and a sample', () => {
    expect(renderInspect(result, style)).toBe(
      [
        's3://b/people.csv.gz',
        '  csv, gzip, 2.0 KiB, about 1,234 rows, 2 columns',
        '',
        'columns',
        '  name  type',
        '  id    integer',
        '  name  string',
        '',
        'sample',
        '  id  name',
        '   1  Ada',
        '  22  NULL',
      ].join('\n'),
    )
  })

  it('shows the profile in place of the columns', () => {
    const profile = [
      { name: 'id', type: 'integer' as const, nulls: 0, min: '1', max: '99', longest: 2, precision: 2, scale: 0 },
    ]
    const text = renderInspect({ ...result, profile, counts: { rows: 99, exact: true } }, style)
    expect(text).toContain(', 99 rows,')
    expect(text).toMatch(/^ {2}id +integer +0 +1 +99 +2 +2,0$/m)
  })
})

describe('ls', () => {
  it('is one line an object', () => {
    const object = {
      key: 'b/k',
      url: 's3://b/k\n',
      size: 1536,
      etag: '"e"',
      modifiedMs: Date.UTC(2026, 11, 2, 14, 15),
      ranged: true,
      replayable: true,
    }
    expect(renderObject({ ...object, storageClass: 'STANDARD' })).toBe(
      String.raw`   1.5 KiB  2026-12-02T14:15:00Z  STANDARD  s3://b/k\n`,
    )
    expect(renderObject({ ...object, size: null, modifiedMs: null })).toBe(
      `${' '.repeat(9)}?  ${' '.repeat(20)}  ${String.raw`s3://b/k\n`}`,
    )
  })
})

describe('verify', () => {
  it('shows both sides and what differs', () => {
    const side = { url: 'a.csv', rows: 2, hash: 'ff', bytes: null }
    const text = renderVerify(
      {
        same: false,
        source: side,
        sink: { ...side, url: 'b.csv', rows: 1 },
        differences: [{ kind: 'missing', text: '2,Grace' }],
      },
      style,
    )
    expect(text.split('\n')).toEqual([
      'different',
      '  url    rows  size  hash',
      '  a.csv     2        ff',
      '  b.csv     1        ff',
      '  missing: 2,Grace',
    ])
  })
})

describe('jobs and show', () => {
  const job: JobDetail = {
    jobId: 'j1',
    status: 'unfinished',
    source: 'a.csv',
    sink: 's3://b/a.csv',
    startedAt: '2026-12-02T14:15:00.123Z',
    endedAt: null,
    rowsWritten: 0,
    bytesRead: 1024,
    options: { concurrency: 2 },
    runs: [{ startedAt: '2026-12-02T14:15:00.123Z', endedAt: null, status: null }],
    result: null,
    partitions: [{ url: 'a.csv', rows: null, bytes: 4096, done: false }],
    resumeCommand: 'sluice resume j1',
  }

  it('is one line a job', () => {
    expect(renderJobs([job])[1]).toBe('j1   unfinished  2026-12-02 14:15:00Z     0  1.0 KiB  a.csv   s3://b/a.csv')
  })

  it('shows runs, partitions, options and how to go on', () => {
    const text = renderJob(job, style)
    for (const part of [
      'j1  unfinished',
      '{"concurrency":2}',
      '2026-12-02 14:15:00Z',
      'a.csv  4.0 KiB  no',
      'resume with: sluice resume j1',
    ]) {
      expect(text).toContain(part)
    }
  })

  it('shows the result of a job that ended, with its error', () => {
    const error = { code: 'SLUICE_VALUE', message: 'bad', where: 'a.csv row 3', hint: 'mend it' }
    const text = renderJob(
      { ...job, status: 'failed', result: jobResult({ status: 'failed', error }), resumeCommand: null },
      style,
    )
    expect(text).toContain('error: bad  [SLUICE_VALUE]\n   at: a.csv row 3')
    expect(text).toContain('failed  after 1.0s')
    expect(text).not.toContain('resume with')
  })
})

describe('dev', () => {
  it('prints URLs, exports fit for a shell, and something to try', () => {
    const services = [
      { name: 'S3', url: 'http://127.0.0.1:1' },
      { name: 'PostgreSQL 18', url: 'postgres://postgres@127.0.0.1:2/postgres' },
    ]
    const text = renderDev({ services, env: { PGPASSWORD: "it's" } }, style)
    expect(text).toContain('S3             http://127.0.0.1:1 (bucket sluice)')
    expect(text).toContain(String.raw`export PGPASSWORD='it'\''s'`)
    expect(text).toContain(
      "sluice copy s3://sluice/people.csv 'postgres://postgres@127.0.0.1:2/postgres?table=people' --create",
    )
  })
})
