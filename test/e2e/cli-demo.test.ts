import { expect, it } from 'vitest'
import { cli, ended, startCli } from './cli-process.ts'

it('the demo does all three jobs, verifies each, and ends with a table of what they did', async () => {
  const { code, stdout, stderr } = await cli(['demo', '--rows', '4000'])
  expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' })
  expect(stderr).toContain('made ukpostcodes.zip: 400 rows')
  expect(stderr).toMatch(/\$ sluice copy http:\/\/127\.0\.0\.1:\d+\/ukpostcodes\.zip dynamodb:\/\/\/Postcodes /)
  expect(stderr).toContain('400 read, 399 written, 1 skipped (1 filtered)')
  expect(stderr.match(/^same {2}on both sides$/gm)).toHaveLength(6)
  const [head = '', , ...jobs] = stdout.trim().split('\n')
  const cells = (line: string): string[] => line.trim().split(/ {2,}/)
  expect(cells(head)).toEqual(['job', 'rows', 'size', 'time', 'rows/s', 'speed', 'retries', 'peak memory', 'verified'])
  const rowsAndVerdict = jobs.map((line) => [cells(line)[0], cells(line)[1], cells(line).at(-1)])
  expect(rowsAndVerdict).toEqual([
    ['file → S3', '–', 'yes'],
    ['S3 → PostgreSQL', '4,000', 'yes'],
    ['PostgreSQL → S3', '4,000', 'yes'],
    ['S3 → file', '–', 'yes'],
    ['zip → DynamoDB', '399', 'yes'],
    ['DynamoDB → S3', '399', 'yes'],
  ])
})

it('a signal ends the demo: its command first, then the services, and none of them fails for want of the other', async () => {
  const child = startCli(['demo', '--rows', '100000'])
  let told = ''
  child.stderr.on('data', (text: Buffer) => {
    told += String(text)
    // A load has begun.
    if (!child.killed && /\$ sluice copy s3:\S+ 'postgres:/.test(told)) child.kill('SIGTERM')
  })
  const { code, stderr } = await ended(child)
  expect(code).toBe(143)
  expect(stderr).toContain('stopped by SIGTERM')
  expect(stderr).not.toMatch(/SLUICE_(?!INTERRUPTED)/)
})
