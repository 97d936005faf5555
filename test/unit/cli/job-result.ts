import type { JobResult } from '../../../src/core/job.ts'

/** A result with nothing in it but what a test is about. */
export function jobResult(some: Partial<JobResult>): JobResult {
  return {
    jobId: 'j1',
    status: 'done',
    source: 's3://b/people.csv',
    sink: 'postgres://u@h/db?table=people',
    route: 'csv → COPY',
    routeReason: 'bytes go as they are',
    runs: 1,
    rowsRead: 0,
    rowsWritten: 0,
    rowsRejected: 0,
    rowsSkipped: 0,
    skipped: { filtered: 0, superseded: 0, existing: 0 },
    bytesRead: 0,
    bytesWritten: 0,
    partitions: 1,
    retries: 0,
    throttles: 0,
    wallMs: 1000,
    cpuMs: 100,
    peakRssBytes: 100 * 1024 * 1024,
    outputs: [],
    rejectFile: null,
    warnings: [],
    resumeCommand: null,
    ...some,
  }
}
