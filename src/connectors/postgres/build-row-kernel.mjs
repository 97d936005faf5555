// Makes row-kernel.ts from row-kernel.wat: `node src/connectors/postgres/build-row-kernel.mjs`.
import { readFileSync, writeFileSync } from 'node:fs'
import wabt from 'wabt'

/** The text of row-kernel.ts. */
export async function rowKernelSource() {
  const tools = await wabt()
  const text = readFileSync(new URL('row-kernel.wat', import.meta.url), 'utf8')
  const { buffer } = tools.parseWat('row-kernel.wat', text, { simd: true }).toBinary({})
  const lines =
    Buffer.from(buffer)
      .toString('base64')
      .match(/.{1,110}/g) ?? []
  return `// Made from row-kernel.wat by build-row-kernel.mjs.

/** The WebAssembly module that takes CopyData messages apart, in base64. */
export const ROW_KERNEL = [
${lines.map((line) => `  '${line}',`).join('\n')}
].join('')
`
}

if (process.argv[1] === new URL(import.meta.url).pathname)
  writeFileSync(new URL('row-kernel.ts', import.meta.url), await rowKernelSource())
