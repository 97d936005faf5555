import { expect, it } from 'vitest'
import { createCredentialSource } from '../../../../../src/aws/credentials.ts'
import { PutCrew } from '../../../../../src/connectors/dynamodb/put/put-crew.ts'
import { threadsData } from '../../../../../src/connectors/dynamodb/put/put-threads.ts'

it('says that threads cannot be started, and leaves none', async () => {
  const target = { table: 't', region: 'eu-west-1', url: 'dynamodb:///t', endpoint: new URL('http://127.0.0.1:1') }
  const puts = { table: 't', keys: [], nulls: 'omit', dedupe: 'last', retryForMs: 0, writeUnits: null } as const
  const data = threadsData({ ...puts, target, concurrency: null, signRequest: false }, 2)
  const crew = new PutCrew({
    // An endpoint that is none: each ends before it has begun.
    threads: data.map((one) => ({ ...one, endpoint: 'nowhere' })),
    credentials: createCredentialSource({ env: {}, signRequest: false }),
    reporter: { warn: () => undefined, retried: () => undefined },
    signal: new AbortController().signal,
    attributesFor: () => [],
  })
  await expect(crew.ready).rejects.toMatchObject({
    code: 'SLUICE_THREADS',
    message: expect.stringMatching(/^the 2 threads that write to DynamoDB cannot be started: .*URL/) as string,
    hint: expect.stringContaining('--workers 0') as string,
  })
  expect(crew.isReady).toBe(false)
  await crew.close()
})
