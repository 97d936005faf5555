/** What is known of a run of vitest: the path of its JSON report, and how it ended. */
export interface VitestRun {
  readonly report: string
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** Counts of one run; `notes` says for people what the numbers alone do not. */
export function countReport(run: VitestRun): { passed: number; failed: number; notes: string[] }
