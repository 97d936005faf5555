import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { cat, inspect } from '../../../src/index.ts'

let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-several-'))
  const files = {
    'a1.csv': 'a,b\n1,2\n',
    'a2.csv': 'b,a\n3,4\n',
    'b1.csv': 'a,b\n1,2\n',
    'b2.csv': 'b,c\n3,4\n',
    'c1.jsonl': '{"a":1,"b":2}\n',
    'c2.jsonl': '{"b":3}\n',
  }
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content)
})
afterAll(() => rmSync(folder, { recursive: true }))

async function shown(pattern: string): Promise<string> {
  const stdout = new PassThrough()
  const all = text(stdout)
  try {
    await cat(join(folder, pattern), { options: {}, env: {}, as: 'csv', stdout })
  } finally {
    stdout.end()
  }
  return all
}

describe('rows of several files', () => {
  it('stand under their own names, whatever the order of columns', async () => {
    expect(await shown('a?.csv')).toBe('a,b\n1,2\n4,3\n')
    expect(await shown('c?.jsonl')).toBe('a,b\n1,2\n,3\n')
  })

  it('are not written under names of others', async () => {
    await expect(shown('b?.csv')).rejects.toMatchObject({
      code: 'SLUICE_COLUMN_MISSING',
      message: expect.stringContaining('"c"') as unknown,
    })
  })

  it('are sampled under all names', async () => {
    const { columns, sample } = await inspect(join(folder, 'b?.csv'), { options: {}, env: {} })
    expect(columns.map(({ name }) => name)).toEqual(['a', 'b', 'c'])
    expect(sample).toEqual([
      ['1', '2'],
      [null, '3', '4'],
    ])
  })
})
