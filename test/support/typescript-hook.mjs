// Strips types with rolldown's transformer, which comes with vite.
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'

const viteRequire = createRequire(createRequire(import.meta.url).resolve('vite/package.json'))
let transform = null

export async function load(url, context, next) {
  if (!url.startsWith('file:') || !url.endsWith('.ts')) return next(url, context)
  transform ??= (await import(pathToFileURL(viteRequire.resolve('rolldown/utils')).href)).transform
  const path = fileURLToPath(url)
  const { code, errors } = await transform(path, await readFile(path, 'utf8'), { sourcemap: false })
  if (errors.length > 0) throw new SyntaxError(`${path}: ${errors.map((error) => error.message).join('; ')}`)
  return { format: 'module', source: code, shortCircuit: true }
}
