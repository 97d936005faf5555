import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { COMMANDS } from '../../../src/cli/command-table.ts'
import { FLAGS, flagsOf } from '../../../src/cli/flags.ts'
import { FLAG_GROUPS } from '../../../src/cli/flag.ts'

/** Every flag that cli.md names, by itself here so that a flag lost from the table is seen. */
const SPECIFIED = `
  source-format sink-format source-compression sink-compression entry
  delimiter quote escape header no-header columns skip-lines comment null empty ragged encoding on-invalid-utf8 on-nul line-end
  by-position select rename type set filename-column skip-if-empty replace transform
  mode key create if-exists yes reject-limit reject-file
  query query-file via commit before-sql after-sql freeze analyze drop-indexes time-zone ledger-schema numeric on-special
  create-table partition-key sort-key warm-writes write-units read-units types dedupe native
  s3-endpoint region profile role-arn external-id no-sign-request path-style part-size parallelism equal-parts checksum sse
  sse-kms-key-id sse-c-key-file storage-class acl tag metadata request-payer expected-bucket-owner
  row-group-rows row-group-bytes parquet-codec max-file-size partition-by manifest single-file
  concurrency partitions workers max-memory bandwidth retry-for
  job-id resume new-job state-dir job queue dry-run check no-glob
  progress json report quiet verbose log-level no-color help
`
  .trim()
  .split(/\s+/)

/** Issue 3, point 7, and issue 4, point 5. */
const BUILT = `
  source-format sink-format source-compression sink-compression entry delimiter quote escape header no-header columns skip-lines
  null empty ragged encoding on-invalid-utf8 on-nul by-position select rename type set skip-if-empty replace mode create if-exists yes
  query query-file numeric on-special row-group-rows row-group-bytes parquet-codec max-file-size single-file manifest line-end
  commit ledger-schema time-zone before-sql after-sql
  create-table partition-key sort-key warm-writes write-units read-units types dedupe s3-endpoint region profile no-sign-request path-style part-size parallelism
  concurrency workers max-memory retry-for job-id resume new-job state-dir dry-run progress json quiet verbose log-level no-color no-glob help
`
  .trim()
  .split(/\s+/)

describe('the table of flags', () => {
  it('has every flag of the specification for copy', () => {
    const names = flagsOf('copy').map((flag) => flag.name)
    expect(SPECIFIED.filter((name) => !names.includes(name))).toEqual([])
  })

  it('builds exactly the flags of this release for copy', () => {
    const built = flagsOf('copy').filter((flag) => flag.built)
    expect(built.map((flag) => flag.name).sort()).toEqual([...BUILT].sort())
  })

  it('has each name once a command, and a known group', () => {
    for (const command of COMMANDS) {
      const names = flagsOf(command.name).map((flag) => flag.name)
      expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([])
    }
    for (const flag of FLAGS) expect(FLAG_GROUPS).toContain(flag.group)
  })

  it('names each library option by its own key', () => {
    const source = readFileSync(new URL('../../../src/core/options.ts', import.meta.url), 'utf8')
    const body = /interface CopyOptions \{([\s\S]*?)\n\}/.exec(source)?.[1] ?? ''
    const keys = [...body.matchAll(/^ {2}readonly (\w+)\?:/gm)].map((match) => match[1])
    const inTable = new Set(FLAGS.filter((flag) => flag.built && flag.scope === 'options').map((flag) => flag.key))
    expect([...inTable].sort()).toEqual([...keys].sort())
  })
})
