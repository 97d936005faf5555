// Makes the WebAssembly kernels' .ts files from their .wat files: `node test/support/write-kernels.mjs`; a unit test compares the two.
import { readFileSync, writeFileSync } from 'node:fs'
import wabt from 'wabt'

const SRC = new URL('../../src/', import.meta.url)

const KERNELS = {
  'formats/csv/screen-kernel': { name: 'SCREEN_KERNEL', does: 'looks at CSV blocks' },
  'connectors/postgres/unload/row-kernel': { name: 'ROW_KERNEL', does: 'takes CopyData messages apart' },
  'connectors/postgres/columns/column-kernel': { name: 'COLUMN_KERNEL', does: 'puts rows of binary COPY into columns' },
}

/** Of each kernel: the path of its .ts file, and the text that its .wat file makes of it. */
export async function kernels() {
  const tools = await wabt()
  return Object.entries(KERNELS).map(([path, { name, does }]) => {
    const file = path.slice(path.lastIndexOf('/') + 1)
    const text = readFileSync(new URL(`${path}.wat`, SRC), 'utf8')
    const { buffer } = tools.parseWat(`${file}.wat`, text, { simd: true }).toBinary({})
    const lines =
      Buffer.from(buffer)
        .toString('base64')
        .match(/.{1,110}/g) ?? []
    const source = `// Made from ${file}.wat by test/support/write-kernels.mjs.

/** The WebAssembly module that ${does}, in base64. */
export const ${name} = [
${lines.map((line) => `  '${line}',`).join('\n')}
].join('')
`
    return { path: new URL(`${path}.ts`, SRC), source }
  })
}

if (process.argv[1] === new URL(import.meta.url).pathname)
  for (const { path, source } of await kernels()) writeFileSync(path, source)
