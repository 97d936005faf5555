import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, expect, it } from 'vitest'
import { copy, verify, type CopyOptions, type VerifyResult } from '../../src/index.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-apart-'))
afterAll(() => rmSync(folder, { recursive: true }))

const file = (name: string, content: string | Uint8Array): string => {
  writeFileSync(join(folder, name), content)
  return join(folder, name)
}
const check = (source: string, sink: string, { options = {} }: { options?: CopyOptions } = {}): Promise<VerifyResult> =>
  verify(source, sink, { options, env: {}, stateDir: join(folder, 'state') })

it.each([
  [
    'another byte far in',
    'x'.repeat(700_000),
    `${'x'.repeat(699_999)}y`,
    'from byte 699999 on; 700000 bytes and 700000 bytes',
  ],
  ['the first byte', 'ab', 'bb', 'from byte 0 on; 2 bytes and 2 bytes'],
  ['a longer one', 'ab', 'abc', 'the first 2 bytes are the same; 2 bytes and 3 bytes'],
  ['nothing', 'ab', '', 'the first 0 bytes are the same; 2 bytes and 0 bytes'],
])('two files that differ by %s: the place is told', async (_, a, b, text) => {
  const { same, differences } = await check(file('a.txt', a), file('b.txt', b))
  expect({ same, differences }).toEqual({ same: false, differences: [{ kind: 'different', text }] })
})

it('compares rows where formats or compressions differ, in any order', async () => {
  const csv = file('rows.csv', 'id,name\n1,Ada\n2,Grace\n2,Grace\n')
  const row = (id: string, name: string): string => `{"name":"${name}","id":"${id}"}\n`
  const jsonl = file('rows.jsonl', row('2', 'Grace') + row('1', 'Ada') + row('2', 'Grace'))
  expect(await check(csv, jsonl)).toMatchObject({ same: true, source: { rows: 3 }, sink: { rows: 3 } })
  const packed = file('rows.csv.gz', gzipSync('id,name\n2,Grace\n2,Grace\n1,Ada\n'))
  expect(await check(csv, packed)).toMatchObject({ same: true, source: { rows: 3 } })
  const short = file('short.jsonl', row('2', 'Grace') + row('1', 'Ada'))
  expect(await check(csv, short)).toMatchObject({ same: false, source: { rows: 3 }, sink: { rows: 2 } })
  const wrong = file('wrong.jsonl', row('2', 'Grace') + row('1', 'Ada') + row('1', 'Ada'))
  expect(await check(csv, wrong)).toMatchObject({ same: false, source: { rows: 3 }, sink: { rows: 3 } })
  expect((await check(csv, wrong)).differences).toEqual([
    { kind: 'different', text: '3 rows on both sides, with other values' },
    { kind: 'missing', text: `row 3 of ${csv}: {"id":"2","name":"Grace"}` },
    { kind: 'extra', text: `row 2 of ${wrong}: {"name":"Ada","id":"1"}` },
  ])
})

it('tells NULL from the empty string, and the columns of values apart', async () => {
  const csv = file('null.csv', 'a,b\n,""\n')
  expect(await check(csv, file('n1.jsonl', '{"a":null,"b":""}\n'))).toMatchObject({ same: true })
  expect(await check(csv, file('n2.jsonl', '{"a":"","b":null}\n'))).toMatchObject({ same: false })
  expect(await check(csv, file('n3.jsonl', '{"a":null,"b":null}\n'))).toMatchObject({ same: false })
  expect(await check(csv, file('n4.jsonl', '{"b":""}\n'))).toMatchObject({ same: true })
})

it('compares what a mapping made of a file with its outcome', async () => {
  const csv = file('map.csv', 'id,name,x\n1,Ada,9\n')
  const options: CopyOptions = { select: ['name', 'id'], rename: ['name=who'] }
  const made = join(folder, 'made.jsonl')
  const { status } = await copy({ source: csv, sink: made, options, env: {}, stateDir: join(folder, 'state') })
  expect(status).toBe('done')
  expect(await check(csv, made, { options })).toMatchObject({ same: true, source: { rows: 1 } })
  expect(await check(csv, made)).toMatchObject({ same: false })
})
