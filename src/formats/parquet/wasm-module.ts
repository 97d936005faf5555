import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'

interface WebAssemblyApi {
  compile(bytes: Uint8Array): Promise<object>
}

let compiled: Promise<object> | null = null

/** parquet-wasm's code (5 MB, 0.03 s), compiled once for all threads, and aside of the program's own. */
export function parquetModule(): Promise<object> {
  if (compiled === null) {
    const compiling = compile()
    compiled = compiling
    compiling.catch(() => {
      compiled = null
    })
  }
  return compiled
}

async function compile(): Promise<object> {
  const path = createRequire(import.meta.url).resolve('parquet-wasm/esm/parquet_wasm_bg.wasm')
  const webAssembly = Reflect.get(globalThis, 'WebAssembly') as WebAssemblyApi
  return webAssembly.compile(await readFile(path))
}
