// A file to S3 and back, beside s5cmd (or aws-cli, where S5CMD names no program).
import { join } from 'node:path'
import { makePeople } from './people.mjs'
import { bars, race, ratio, sh, table } from './race.mjs'
import { peerFolder, s5cmd, scratch, sluice, startS3 } from './services.mjs'

export async function run({ rounds }) {
  const folder = scratch()
  const s3 = await startS3(folder)
  const file = join(folder, 'people.csv')
  const bytes = makePeople({ rows: 10_000_000, path: file })
  const hash = sh(`sha256sum < ${file}`)
  const peer = s5cmd()
  const name = peer === null ? 'aws-cli' : 's5cmd'
  const peerCopy = (from, to) =>
    peer === null
      ? `${peerFolder()}/bin/aws s3 cp --quiet ${from} ${to}`
      : `${peer} --endpoint-url ${s3.endpoint} cp ${from} ${to} > /dev/null`
  const own = (from, to) =>
    `${sluice()} copy ${from} ${to} --state-dir ${folder}/state --if-exists overwrite --new-job -q`
  const same = (path) => () => {
    if (sh(`sha256sum < ${path}`) !== hash) throw new Error(`${path} is not what was sent`)
  }
  const up = join(folder, 's3/bench/up.csv')
  const down = join(folder, 'down.csv')
  const ways = [
    { name: 'sluice up', before: () => sh(`rm -f ${up}`), command: own(file, 's3://bench/up.csv'), check: same(up) },
    {
      name: `${name} up`,
      before: () => sh(`rm -f ${up}`),
      command: peerCopy(file, 's3://bench/up.csv'),
      check: same(up),
    },
    {
      name: 'sluice down',
      before: () => sh(`rm -f ${down}`),
      command: own('s3://bench/up.csv', down),
      check: same(down),
    },
    {
      name: `${name} down`,
      before: () => sh(`rm -f ${down}`),
      command: peerCopy('s3://bench/up.csv', down),
      check: same(down),
    },
  ]
  const results = race({ rounds, env: s3.env, ways })
  const wanted = peer === null ? { up: 0.8, down: 0.8 } : { up: 1.15, down: 2 }
  const list = [
    { what: `up, against ${name}`, value: ratio(results, 'sluice up', `${name} up`), bar: wanted.up },
    { what: `down, against ${name}`, value: ratio(results, 'sluice down', `${name} down`), bar: wanted.down },
  ]
  return `${bytes} bytes, versitygw 1.8.0; each run is checked by SHA-256.\n\n${table(results)}\n\n${bars(list)}`
}
