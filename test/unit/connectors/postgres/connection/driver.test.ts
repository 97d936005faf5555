import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const SOURCE = fileURLToPath(new URL('../../../../../src/connectors/postgres/connection/driver.ts', import.meta.url))

it('loads pg without undici, and leaves no navigator behind that Node does not have', async () => {
  const { transformWithOxc } = await import('vite')
  const { readFile } = await import('node:fs/promises')
  const { code } = await transformWithOxc(await readFile(SOURCE, 'utf8'), SOURCE)
  const program = `${code.replaceAll('import.meta.url', JSON.stringify(import.meta.url))}
    console.log(JSON.stringify({
      client: typeof pg.Client,
      undici: process.moduleLoadList.includes('NativeModule internal/deps/undici/undici'),
      navigator: typeof navigator,
    }))`
  const run = (text: string): unknown =>
    JSON.parse(execFileSync(process.execPath, ['--input-type=module', '-e', text], { encoding: 'utf8' }))
  const bare = run('console.log(JSON.stringify(typeof navigator))')
  expect(run(program)).toEqual({ client: 'function', undici: false, navigator: bare })
})
