// What a report of vitest's JSON reporter says, and what it can't say by itself: suites that did not load, errors outside
// of any test, tests that were skipped, and runs that left no report all count as failed.
import { readFileSync } from 'node:fs'

/** Counts of one run; `notes` says for people what the numbers alone do not. */
export function countReport({ report, code, signal }) {
  let result
  try {
    result = JSON.parse(readFileSync(report, 'utf8'))
  } catch {
    return { passed: 0, failed: 1, notes: [`vitest left no report (${signal ?? `exit code ${code}`})`] }
  }
  const notes = []
  const crashed = result.testResults.filter(
    (suite) => suite.status === 'failed' && !suite.assertionResults.some((test) => test.status === 'failed'),
  )
  for (const suite of crashed) notes.push(`${suite.name} failed outside of its tests`)
  const skipped = result.numPendingTests + result.numTodoTests
  if (skipped > 0) notes.push(`${skipped} tests were skipped`)
  let failed = result.numFailedTests + crashed.length + skipped
  if (result.numTotalTests === 0 && failed === 0) notes.push('vitest ran no test')
  else if (failed === 0 && code !== 0)
    notes.push(`vitest ended with ${signal ?? `exit code ${code}`}, though no test failed`)
  if (failed === 0 && notes.length > 0) failed = 1
  return { passed: result.numPassedTests, failed, notes }
}
