import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ByteRange, ObjectInfo, Store } from '../../../src/core/ports.ts'
import { createHttpStore } from '../../../src/stores/http-store.ts'
import { type HttpFile, type MisbehavingHttp, startMisbehavingHttp } from '../../support/misbehaving-http.ts'

const o = { signal: new AbortController().signal }
const BYTES = Buffer.from(Array.from({ length: 100_000 }, (_, n) => (n * 7 + (n >> 8)) & 255))

let server: MisbehavingHttp
let store: Store

beforeAll(async () => {
  server = await startMisbehavingHttp()
  store = createHttpStore({ retryForMs: 20_000, reporter: { warn: () => undefined, retried: () => undefined } })
})

afterAll(async () => {
  await store.close()
  await server.stop()
})

function serve(file: Partial<HttpFile>): string {
  return server.file('/a.csv', { bytes: BYTES, ...file })
}

async function readAll(info: ObjectInfo, range: ByteRange): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of store.read(info, range, o)) chunks.push(chunk)
  return Buffer.concat(chunks)
}

describe('http store, cut anywhere', () => {
  it('gives the same bytes, whatever is cut where, with ranges and without', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          start: fc.integer({ min: 0, max: 100_100 }),
          length: fc.integer({ min: 0, max: 100_100 }),
          cuts: fc.array(fc.integer({ min: 0, max: 60_000 }), { maxLength: 4 }),
          modes: fc.array(fc.constantFrom('honour', 'ignore', 'short', 'unsized'), { minLength: 1, maxLength: 4 }),
          dated: fc.boolean(),
        }),
        async ({ start, length, cuts, modes, dated }) => {
          let answers = 0
          const next = (): Partial<HttpFile> => {
            const afterBytes = cuts[answers]
            const ranges = modes[answers % modes.length] ?? 'honour'
            answers += 1
            return {
              ranges,
              ...(dated ? { etag: null } : {}),
              ...(afterBytes === undefined ? {} : { cut: { afterBytes, times: 1 } }),
            }
          }
          server.onRequest(() => undefined)
          const info = await store.head(serve(dated ? { etag: null } : {}), o)
          server.onRequest(() => serve(next()))
          const bytes = await readAll(info, { start, end: start + length })
          expect(bytes.equals(BYTES.subarray(start, start + length))).toBe(true)
        },
      ),
      { numRuns: 30 },
    )
  })
})
