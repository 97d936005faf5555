import { mkdtempSync, readdirSync, readFileSync, readlinkSync, renameSync, rmSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { ParkedFile } from '../../../../src/stores/local/parked-file.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-parked-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

/** Descriptors of this process that are open in the folder. */
function descriptors(): number {
  const links = readdirSync('/proc/self/fd').map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`)
    } catch {
      return ''
    }
  })
  return links.filter((path) => path.startsWith(folder)).length
}

it('many files in writing hold few descriptors, and each gets its bytes', async () => {
  const files: ParkedFile[] = []
  for (let n = 0; n < 400; n += 1) {
    const path = join(folder, `${n}`)
    files.push(new ParkedFile(path, await open(path, 'wx+')))
  }
  for (const turn of ['a', 'b'])
    for (const [n, file] of files.entries())
      await file.use((handle) => handle.write(Buffer.from(`${turn}${n};`), 0, null, turn === 'a' ? 0 : `a${n};`.length))
  // Handles are closed without waiting for it.
  for (let tries = 0; tries < 100 && descriptors() > 128; tries += 1) await new Promise((done) => setTimeout(done, 10))
  expect(descriptors()).toBeLessThanOrEqual(128)
  await Promise.all(files.map((file) => file.close()))
  expect(descriptors()).toBe(0)
  for (const n of [0, 1, 200, 399]) expect(readFileSync(join(folder, `${n}`), 'utf8')).toBe(`a${n};b${n};`)
})

it('is opened once for all who use it at a time, under the name that it has then', async () => {
  const files: ParkedFile[] = []
  for (let n = 0; n < 200; n += 1)
    files.push(new ParkedFile(join(folder, `${n}`), await open(join(folder, `${n}`), 'wx')))
  const [first] = files
  if (first === undefined) throw new Error('none')
  renameSync(first.path, join(folder, 'renamed'))
  first.path = join(folder, 'renamed')
  const handles = await Promise.all([1, 2, 3].map(() => first.use((handle) => Promise.resolve(handle))))
  expect(new Set(handles).size).toBe(1)
  await Promise.all(files.map((file) => file.close()))
  expect(descriptors()).toBe(0)
})
