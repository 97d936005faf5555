import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createHttpStore } from '../../src/stores/http-store.ts'
import { createLocalStore } from '../../src/stores/local-store.ts'
import { createStreamStore } from '../../src/stores/stream-store.ts'
import { startMisbehavingHttp } from '../support/misbehaving-http.ts'
import { describeStore, type StoreUnderTest } from './store-suite.ts'

async function local(): Promise<StoreUnderTest> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-store-'))
  const keyOf = (name: string): string => join(folder, name)
  return {
    store: createLocalStore(),
    keyOf,
    put: (name, bytes) => {
      mkdirSync(dirname(keyOf(name)), { recursive: true })
      writeFileSync(join(folder, '.put'), bytes)
      renameSync(join(folder, '.put'), keyOf(name))
      return Promise.resolve(keyOf(name))
    },
    leftovers: () =>
      Promise.resolve(
        readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.includes('.sluice-')),
      ),
    close: () => Promise.resolve(rmSync(folder, { recursive: true })),
  }
}

async function http(): Promise<StoreUnderTest> {
  const server = await startMisbehavingHttp()
  const path = (name: string): string => `/${name.split('/').map(encodeURIComponent).join('/')}`
  return {
    store: createHttpStore({ retryForMs: 5000, reporter: { warn: () => undefined, retried: () => undefined } }),
    keyOf: (name) => server.origin + path(name),
    put: (name, bytes) => Promise.resolve(server.file(path(name), { bytes })),
    leftovers: () => Promise.resolve([]),
    close: () => server.stop(),
  }
}

async function stream(): Promise<StoreUnderTest> {
  let bytes = new Uint8Array()
  async function* input(): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < bytes.byteLength; at += 65_536) yield bytes.subarray(at, at + 65_536)
  }
  return {
    store: createStreamStore({ [Symbol.asyncIterator]: () => input() }),
    keyOf: () => '-',
    put: (_, content) => {
      bytes = new Uint8Array(content)
      return Promise.resolve('-')
    },
    leftovers: () => Promise.resolve([]),
    close: () => Promise.resolve(),
  }
}

describeStore('local', local, { lists: true, writes: true })
describeStore('http', http)
describeStore('stream', stream, { once: true })
