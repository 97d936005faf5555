import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createHttpStore } from '../../src/stores/http-store.ts'
import { createS3Store } from '../../src/stores/s3/s3-store.ts'
import { createLocalStore } from '../../src/stores/local-store.ts'
import { createStreamStore } from '../../src/stores/stream-store.ts'
import { startMisbehavingHttp } from '../support/misbehaving-http.ts'
import { freshBucket, type S3Address, s3Do, sharedServices } from '../support/services.ts'
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

/** One bucket a service, a prefix in it for each test. */
const buckets = new Map<string, Promise<string>>()

async function s3(address: S3Address): Promise<StoreUnderTest> {
  const made = buckets.get(address.endpoint) ?? freshBucket(address)
  buckets.set(address.endpoint, made)
  const bucket = await made
  const prefix = `t${randomBytes(6).toString('hex')}/`
  const keyOf = (name: string): string => `${bucket}/${prefix}${name}`
  return {
    store: createS3Store({
      endpoint: address.endpoint,
      env: address.env,
      retryForMs: 10_000,
      reporter: { warn: () => undefined, retried: () => undefined },
    }),
    keyOf,
    put: async (name, body) => {
      await s3Do(address, { method: 'PUT', path: `/${keyOf(name)}`, body })
      return keyOf(name)
    },
    leftovers: async () => {
      const { body } = await s3Do(address, { method: 'GET', path: `/${bucket}`, query: { uploads: '' } })
      return [...body.toString().matchAll(/<Key>([^<]*)<\/Key>/g)]
        .map((match) => match[1] ?? '')
        .filter((key) => key.startsWith(prefix))
    },
    close: () => Promise.resolve(),
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
describeStore('s3 on versitygw', () => s3(sharedServices().versitygw), { lists: true, writes: true })
// Seen with 4.48: it walks folders, and lists p/a/b before p/a.b/c.
describeStore('s3 on SeaweedFS', () => s3(sharedServices().seaweedfs), { lists: true, unordered: true, writes: true })
