import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { kernels } from '../support/write-kernels.mjs'

describe('the WebAssembly kernels', () => {
  it('are what their texts say', async () => {
    const all = await kernels()
    expect(all.length).toBeGreaterThan(2)
    for (const { path, source } of all) expect(readFileSync(path, 'utf8')).toBe(source)
  })
})
