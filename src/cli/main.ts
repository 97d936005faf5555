#!/usr/bin/env node
import { readFileSync } from 'node:fs'

/** From dist/cli/main.js and from src/cli/main.ts alike, package.json lies two folders up. */
function version(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}

const words = process.argv.slice(2)
if (words.length === 1 && (words[0] === '--version' || words[0] === '-V')) {
  process.stdout.write(`${version()}\n`)
} else {
  try {
    const { boundRegexes, collectLessOften } = await import('./v8-flags.ts')
    collectLessOften()
    boundRegexes()
    const { run } = await import('./run.ts')
    await run({ words, version: version() })
  } catch (error) {
    // What cannot even be loaded has no screen yet to be told on: no descriptors are left, or the installation is broken.
    const { message } = error instanceof Error ? error : new Error(String(error))
    process.stderr.write(`error: sluice cannot start: ${message}\n hint: raise ulimit -n, or install sluice anew\n`)
    process.exitCode = 2
  }
}
