import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { writePeople } from '../../../../src/cli/demo/people.ts'

it('writes as many rows as asked, the same each time, and says how many bytes', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-people-'))
  try {
    const [a, b] = [join(folder, 'a.csv'), join(folder, 'b.csv')]
    const bytes = await writePeople(a, 10_001)
    await writePeople(b, 10_001)
    const text = readFileSync(a, 'utf8')
    expect(readFileSync(b, 'utf8')).toBe(text)
    expect(Buffer.byteLength(text)).toBe(bytes)
    const lines = text.trimEnd().split('\n')
    expect(lines).toHaveLength(10_002)
    expect(lines[0]).toBe('id,name,city,joined,visits')
    expect(lines[10_001]).toMatch(/^10001,/)
    expect(text).toContain('"Washington, D.C."')
    for (const line of lines.slice(1)) expect(line).toMatch(/^\d+,\w+ \w+,(?:"[^"]+"|[^,"]+),20\d\d-\d\d-\d\d,\d*$/)
  } finally {
    rmSync(folder, { recursive: true })
  }
})
