import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { verify } from '../../../src/index.ts'

/** Open files of this process, on Linux and macOS. */
const open = (): number => readdirSync('/dev/fd').length

it('files that differ early are both closed again', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-verify-'))
  try {
    // Several chunks each: the rest is not read.
    const text = Buffer.alloc(24 * 1024 * 1024, 'a')
    writeFileSync(join(folder, 'a.bin'), text)
    text[5] = 98
    writeFileSync(join(folder, 'b.bin'), text)
    const compare = () =>
      verify(join(folder, 'a.bin'), join(folder, 'b.bin'), { options: {}, env: {}, stateDir: folder })
    expect((await compare()).differences).toEqual([
      { kind: 'different', text: expect.stringMatching(/^from byte 5 on; /) as string },
    ])
    const before = open()
    for (let i = 0; i < 3; i += 1) await compare()
    expect(open()).toBe(before)
  } finally {
    rmSync(folder, { recursive: true })
  }
})
