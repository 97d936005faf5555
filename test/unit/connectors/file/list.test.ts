import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { list } from '../../../../src/api/list.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-list-'))
  mkdirSync(join(folder, 'empty'))
  writeFileSync(join(folder, 'a.csv'), 'id\n1\n')
})
afterEach(() => rmSync(folder, { recursive: true }))

const keys = async (name: string): Promise<string[]> => {
  const found: string[] = []
  for await (const { key } of list(join(folder, name), { options: {}, env: {} })) found.push(key)
  return found
}

describe('a local listing', () => {
  it.each(['missing/', 'missing', 'missing.csv', 'empty/below/', 'a.csv/'])(
    'of what is not there is an error: %s',
    async (name) => {
      await expect(keys(name)).rejects.toMatchObject({ code: 'SLUICE_NOT_FOUND' })
    },
  )

  it('of an empty folder is empty', async () => {
    expect(await keys('empty/')).toEqual([])
    expect(await keys('a.csv')).toEqual([join(folder, 'a.csv')])
  })
})
