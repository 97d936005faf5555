import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { acquireLock, isLocked } from '../../../src/engine/job-lock.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-lock-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

it('is held by one, and leaves nothing when it is given back', async () => {
  const release = await acquireLock(folder)
  expect(await isLocked(folder)).toBe(true)
  await expect(acquireLock(folder)).rejects.toMatchObject({ code: 'SLUICE_JOB_RUNNING' })
  await release()
  expect(await isLocked(folder)).toBe(false)
  expect(readdirSync(folder)).toEqual([])
})

it.each([
  ['a process that is no more', { pid: 2 ** 22 + 1, began: '1' }],
  ['a process whose id another one has now', { pid: process.pid, began: '1' }],
])('of %s is taken over', async (_, owner) => {
  writeFileSync(join(folder, 'lock'), JSON.stringify(owner))
  const release = await acquireLock(folder)
  expect(await isLocked(folder)).toBe(true)
  await release()
})
