import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { pythonTools } from './tools.mjs'

const run = promisify(execFile)
const PRELUDE = `
import json, sys, datetime, decimal, math, uuid
import duckdb, pyarrow as pa, pyarrow.compute as pc, pyarrow.parquet as pq

def out(value):
    json.dump(value, sys.stdout, default=str)
`

/** Runs a program in Python with DuckDB and pyarrow at hand, which calls \`out(value)\` once; resolves with the value. */
export async function judge(program: string, ...args: readonly string[]): Promise<unknown> {
  const { stdout } = await run('python3', ['-c', PRELUDE + program, ...args], {
    env: { ...process.env, PYTHONPATH: pythonTools(), TZ: 'UTC' },
    maxBuffer: 64 * 1024 * 1024,
  })
  return stdout === '' ? null : (JSON.parse(stdout) as unknown)
}
