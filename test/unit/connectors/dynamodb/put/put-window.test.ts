import { setTimeout as delay } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { CapacityBudget } from '../../../../../src/connectors/dynamodb/put/capacity.ts'
import { InFlightLimit } from '../../../../../src/connectors/dynamodb/put/in-flight.ts'
import type { ExtentPuts } from '../../../../../src/connectors/dynamodb/put/put-batch.ts'
import { PutWindow } from '../../../../../src/connectors/dynamodb/put/put-window.ts'

interface Sent {
  readonly RequestItems: Readonly<Record<string, readonly { readonly PutRequest: { readonly Item: unknown } }[]>>
}

/** A window whose requests are answered by `answer`; what was sent is kept, parsed. */
function windowTo(
  answer: (puts: readonly unknown[], number: number) => unknown,
  capacity: CapacityBudget | null = null,
) {
  const sent: (readonly unknown[])[] = []
  const window = new PutWindow({
    client: {
      send: (_, body) => {
        const { RequestItems } = JSON.parse(Buffer.from(body).toString('utf8')) as Sent
        const puts = RequestItems['T'] ?? []
        sent.push(puts)
        return Promise.resolve(Buffer.from(JSON.stringify(answer(puts, sent.length))))
      },
      reporter: { warn: () => undefined, retried: () => undefined },
    },
    table: 'T',
    keys: [{ name: 'id', type: 'S' }],
    limit: new InFlightLimit({ initial: 8, min: 8, max: 8 }),
    capacity,
    dedupe: 'last',
    retryForMs: 10_000,
    signal: new AbortController().signal,
  })
  const put = async (id: string, extent: ExtentPuts): Promise<void> => {
    const { open } = window
    open.reserve(100 + id.length)
    const text = `${String.fromCharCode(open.separator)}{"PutRequest":{"Item":{"id":{"S":"${id}"}}}}`
    window.add(id, open.at + open.bytes.write(text, open.at), extent)
    if (window.open.isFull) await window.makeRoom()
  }
  return { window, sent, put }
}

const fresh = (): ExtentPuts => ({ pending: 0, accepted: 0, superseded: 0 })

it('what waits for an extent leaves room for who writes the next one, however much is due for another try', async () => {
  // The first requests come back whole, so that requests are due for longer than the source is slow.
  const { window, sent, put } = windowTo((puts, number) => ({ UnprocessedItems: number <= 20 ? { T: puts } : {} }))
  const [first, second] = [fresh(), fresh()]
  window.begin()
  for (let i = 0; i < 500; i += 1) await put(`a${i}`, first)
  window.written()
  window.begin()
  const settled = window.settled(first)
  await put('b0', second)
  // The source is slow: meanwhile what is due goes out.
  await delay(200)
  for (let i = 1; i < 40; i += 1) await put(`b${i}`, second)
  window.written()
  await settled
  await window.settled(second)
  expect(Math.max(...sent.map((puts) => puts.length))).toBeLessThanOrEqual(25)
  expect([first.accepted, second.accepted]).toEqual([500, 40])
})

it('counts write units by the bytes of items where the server does not tell them', async () => {
  const capacity = new CapacityBudget(1)
  const { window, put } = windowTo(() => ({ UnprocessedItems: {} }), capacity)
  const extent = fresh()
  window.begin()
  for (let i = 0; i < 10; i += 1) await put(`${i}`.padEnd(5000, 'x'), extent)
  window.written()
  await window.settled(extent)
  // Ten items of 5 KB cost 50 units: so many seconds at one a second, not ten.
  expect(capacity.waitMs()).toBeGreaterThan(45_000)
})
