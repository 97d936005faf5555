// Makes row-kernel.ts and column-kernel.ts from their .wat files: `node src/connectors/postgres/build-row-kernel.mjs`.
import { readFileSync, writeFileSync } from 'node:fs'
import wabt from 'wabt'

const KERNELS = {
  'row-kernel': { name: 'ROW_KERNEL', does: 'takes CopyData messages apart' },
  'column-kernel': { name: 'COLUMN_KERNEL', does: 'puts rows of binary COPY into columns' },
}

/** The text of row-kernel.ts or column-kernel.ts. */
export async function kernelSource(file) {
  const { name, does } = KERNELS[file]
  const tools = await wabt()
  const text = readFileSync(new URL(`${file}.wat`, import.meta.url), 'utf8')
  const { buffer } = tools.parseWat(`${file}.wat`, text, { simd: true }).toBinary({})
  const lines =
    Buffer.from(buffer)
      .toString('base64')
      .match(/.{1,110}/g) ?? []
  return `// Made from ${file}.wat by build-row-kernel.mjs.

/** The WebAssembly module that ${does}, in base64. */
export const ${name} = [
${lines.map((line) => `  '${line}',`).join('\n')}
].join('')
`
}

if (process.argv[1] === new URL(import.meta.url).pathname)
  for (const file of Object.keys(KERNELS))
    writeFileSync(new URL(`${file}.ts`, import.meta.url), await kernelSource(file))
