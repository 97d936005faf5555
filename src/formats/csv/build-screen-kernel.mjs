// Makes screen-kernel.ts from screen-kernel.wat: `node src/formats/csv/build-screen-kernel.mjs`.
import { readFileSync, writeFileSync } from 'node:fs'
import wabt from 'wabt'

/** The text of screen-kernel.ts. */
export async function kernelSource() {
  const tools = await wabt()
  const module = tools.parseWat(
    'screen-kernel.wat',
    readFileSync(new URL('screen-kernel.wat', import.meta.url), 'utf8'),
    { simd: true },
  )
  const { buffer } = module.toBinary({})
  const lines =
    Buffer.from(buffer)
      .toString('base64')
      .match(/.{1,110}/g) ?? []
  return `// Made from screen-kernel.wat by build-screen-kernel.mjs.

/** The WebAssembly module that looks at CSV blocks, in base64. */
export const SCREEN_KERNEL = [
${lines.map((line) => `  '${line}',`).join('\n')}
].join('')
`
}

if (process.argv[1] === new URL(import.meta.url).pathname)
  writeFileSync(new URL('screen-kernel.ts', import.meta.url), await kernelSource())
