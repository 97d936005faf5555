import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { publishNew } from '../../../../src/stores/local/publish.ts'

/** No file system at hand refuses hard links, so the system's answer is played. */
const noLinks = (): Promise<void> => Promise.reject(Object.assign(new Error('link'), { code: 'EPERM' }))

describe('publishing on a file system without hard links', () => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-publish-'))
    writeFileSync(join(folder, 'temporary'), 'new')
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  it('takes the name, then renames', async () => {
    await publishNew(join(folder, 'temporary'), join(folder, 'a'), noLinks)
    expect(readdirSync(folder)).toEqual(['a'])
    expect(readFileSync(join(folder, 'a'), 'utf8')).toBe('new')
  })

  it('leaves what is there', async () => {
    writeFileSync(join(folder, 'a'), 'old')
    await expect(publishNew(join(folder, 'temporary'), join(folder, 'a'), noLinks)).rejects.toMatchObject({
      code: 'EEXIST',
    })
    expect(readFileSync(join(folder, 'a'), 'utf8')).toBe('old')
    expect(readdirSync(folder)).toEqual(['a', 'temporary'])
  })

  it('does not take another failure for missing links', async () => {
    const broken = (): Promise<void> => Promise.reject(Object.assign(new Error('link'), { code: 'EIO' }))
    await expect(publishNew(join(folder, 'temporary'), join(folder, 'a'), broken)).rejects.toMatchObject({
      code: 'EIO',
    })
    expect(readdirSync(folder)).toEqual(['temporary'])
  })
})
