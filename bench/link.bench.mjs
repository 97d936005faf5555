// A plain file to S3 over a link that gives each connection 25 MB/s: parts in flight instead of one at a time.
import { join } from 'node:path'
import { makePeople } from './people.mjs'
import { bars, race, ratio, sh, table } from './race.mjs'
import { scratch, sluice, startLink, startS3 } from './services.mjs'

export async function run({ rounds }) {
  const folder = scratch()
  const s3 = await startS3(folder)
  const port = await startLink(s3.port, 25_000_000)
  const file = join(folder, 'people.csv')
  const bytes = makePeople({ rows: 10_000_000, path: file })
  const hash = sh(`sha256sum < ${file}`)
  const up = join(folder, 's3/bench/up.csv')
  const ways = [0, 1, 2, 3].map((parallelism) => ({
    name: `--parallelism ${parallelism}`,
    before: () => sh(`rm -f ${up}`),
    command: `${sluice()} copy ${file} s3://bench/up.csv --parallelism ${parallelism} --state-dir ${folder}/state --new-job -q`,
    check: () => {
      if (sh(`sha256sum < ${up}`) !== hash) throw new Error('the object is not what was sent')
    },
  }))
  const results = race({ rounds, env: { ...s3.env, AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${port}` }, ways })
  return `${bytes} bytes, 25 MB/s a connection.\n\n${table(results)}\n\n${bars([{ what: '0 against 3', value: ratio(results, '--parallelism 0', '--parallelism 3'), bar: 2.6, atLeast: true }])}`
}
