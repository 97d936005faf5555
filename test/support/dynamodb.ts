import { createRequire } from 'node:module'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { openDynamoClient } from '../../src/connectors/dynamodb/client.ts'
import { findDynamoTarget } from '../../src/connectors/dynamodb/url.ts'
import { freePort } from './free-port.ts'
import { makeFolder, removeFolder, startProcess, waitUntilReady } from './service-process.ts'
import { ministackFolder } from './tools.mjs'

const START_MS = 30_000

/** A DynamoDB of a test's own. */
export interface DynamoAddress {
  readonly endpoint: string
  /** What sluice wants in its environment. */
  readonly env: Readonly<Record<string, string>>
}

export interface DynamoServer extends DynamoAddress {
  stop(): Promise<void>
}

type Dynalite = (o: { createTableMs: number; deleteTableMs: number; updateTableMs: number }) => Server

/** dynalite in this process: validates as DynamoDB does, never returns UnprocessedItems by itself. */
export async function startDynalite(): Promise<DynamoServer> {
  const dynalite = createRequire(import.meta.url)('dynalite') as Dynalite
  return listening(dynalite({ createTableMs: 0, deleteTableMs: 0, updateTableMs: 0 }))
}

/** ministack in a process of its own: a second DynamoDB, of other people; ready in about a second. */
export async function startMinistack(): Promise<DynamoServer> {
  const folder = makeFolder('ministack')
  const port = await freePort()
  const service = startProcess({
    command: 'python3',
    args: ['-m', 'ministack'],
    env: {
      PYTHONPATH: ministackFolder(),
      GATEWAY_HOST: '127.0.0.1',
      GATEWAY_PORT: String(port),
      SERVICES: 'dynamodb',
    },
    cwd: folder,
    stopSignal: 'SIGTERM',
  })
  const address = addressAt(`http://127.0.0.1:${port}`)
  const ready = async (): Promise<boolean> => {
    const answer = await fetch(`${address.endpoint}/_ministack/health`).catch(() => null)
    await answer?.arrayBuffer()
    return answer?.ok === true
  }
  await waitUntilReady(service, ready, START_MS)
  return {
    ...address,
    stop: async () => {
      await service.stop()
      removeFolder(folder)
    },
  }
}

/** What is needed to reach a server. */
function addressAt(endpoint: string): DynamoAddress {
  const AWS_SECRET_ACCESS_KEY = 'secret-of-the-test'
  return {
    endpoint,
    env: {
      AWS_ENDPOINT_URL_DYNAMODB: endpoint,
      AWS_ACCESS_KEY_ID: 'test',
      AWS_SECRET_ACCESS_KEY,
      AWS_REGION: 'eu-west-1',
    },
  }
}

async function listening(server: Server): Promise<DynamoServer> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    ...addressAt(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
    stop: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** An attribute as DynamoDB writes it: `{ S: 'x' }`. */
export type WireItem = Readonly<Record<string, Readonly<Record<string, unknown>>>>

/** One operation, answered and parsed. */
export async function dynamoCall(server: DynamoAddress, operation: string, body: object): Promise<unknown> {
  const signal = AbortSignal.timeout(20_000)
  const around = { options: {}, env: server.env }
  const target = await findDynamoTarget('dynamodb:///any', around)
  const reporter = { warn: () => undefined, retried: () => undefined }
  const request = { ...around, url: '', reporter, signal, retryForMs: 0, spoolDir: '' }
  const client = openDynamoClient(request, target)
  try {
    return await client.call(operation, body, { signal })
  } finally {
    await client.close()
  }
}

/** All items of a table, in no order. */
export async function scanAll(server: DynamoAddress, table: string): Promise<WireItem[]> {
  const items: WireItem[] = []
  let from: unknown
  do {
    const page = (await dynamoCall(server, 'Scan', { TableName: table, ExclusiveStartKey: from })) as {
      Items: WireItem[]
      LastEvaluatedKey?: unknown
    }
    items.push(...page.Items)
    from = page.LastEvaluatedKey
  } while (from !== undefined)
  return items
}

/** The puts of a BatchWriteItem request. */
export interface SeenBatch {
  /** From 0, over all requests. */
  readonly number: number
  readonly items: readonly WireItem[]
}

/** What happens to a request: it passes; an error; a reset before or after the server had it; some of its puts come back. */
export type Fate =
  | 'pass'
  | { readonly error: string; readonly status?: number }
  | 'cut'
  | 'cut-after'
  | { readonly unprocessed: (item: WireItem, index: number) => boolean }
  | { readonly delayMs: number }
  /** It passes once this is settled. */
  | { readonly after: Promise<unknown> }

export interface DynamoFaults extends DynamoServer {
  readonly batches: readonly SeenBatch[]
  /** Most BatchWriteItem requests under way at the same time. */
  readonly mostInFlight: number
  /** Write units that the server said BatchWriteItem requests consumed, in the order of its answers, and when they had come. */
  readonly consumed: readonly { readonly askedMs: number; readonly units: number }[]
  /** Decides on each BatchWriteItem; everything else passes. */
  decide: (batch: SeenBatch) => Fate
  /** Scan requests so far. */
  readonly scans: number
  /** How long each Scan is held up. */
  scanDelayMs: number
}

/** A proxy that does to BatchWriteItem what DynamoDB and networks do on bad days. */
export async function startDynamoFaults(server: DynamoAddress): Promise<DynamoFaults> {
  const batches: SeenBatch[] = []
  let inFlight = 0
  const decide: DynamoFaults['decide'] = () => 'pass'
  const consumed: { askedMs: number; units: number }[] = []
  const faults = { batches, mostInFlight: 0, decide, scans: 0, scanDelayMs: 0, consumed }
  const proxy = createServer((incoming, answer) => {
    void serve(incoming, answer).catch(() => answer.destroy())
  })
  const serve = async (incoming: IncomingMessage, answer: ServerResponse): Promise<void> => {
    const body = await bytesOf(incoming)
    if (String(incoming.headers['x-amz-target']).endsWith('.Scan')) {
      faults.scans += 1
      await delay(faults.scanDelayMs)
    }
    if (!String(incoming.headers['x-amz-target']).endsWith('.BatchWriteItem')) {
      await pass(server, incoming, { body, answer })
      return
    }
    inFlight += 1
    faults.mostInFlight = Math.max(faults.mostInFlight, inFlight)
    try {
      const [table, puts] = putsOf(body)
      const batch = { number: batches.length, items: puts.map((put) => put.PutRequest.Item) }
      batches.push(batch)
      await meet(faults.decide(batch), { incoming, answer, body, table, puts })
    } finally {
      inFlight -= 1
    }
  }
  const passCounted = async ({ incoming, body, answer }: Meeting): Promise<void> => {
    const askedMs = performance.now()
    const bytes = await pass(server, incoming, { body, answer })
    const { ConsumedCapacity = [] } = JSON.parse(bytes.toString('utf8')) as {
      readonly ConsumedCapacity?: readonly { readonly CapacityUnits: number }[]
    }
    consumed.push({ askedMs, units: ConsumedCapacity.reduce((sum, { CapacityUnits }) => sum + CapacityUnits, 0) })
  }
  const meet = async (fate: Fate, o: Meeting): Promise<void> => {
    const { incoming, answer, body } = o
    if (fate === 'cut') incoming.socket.resetAndDestroy()
    else if (fate === 'cut-after') {
      await forward(server, incoming, body)
      incoming.socket.resetAndDestroy()
    } else if (fate === 'pass') await passCounted(o)
    else if ('delayMs' in fate) {
      await new Promise((resolve) => setTimeout(resolve, fate.delayMs))
      await pass(server, incoming, { body, answer })
    } else if ('after' in fate) {
      await fate.after
      await pass(server, incoming, { body, answer })
    } else if ('error' in fate) {
      answer.writeHead(fate.status ?? 400, { 'content-type': 'application/x-amz-json-1.0' })
      answer.end(JSON.stringify({ __type: `com.amazonaws.dynamodb.v20120810#${fate.error}`, message: 'as told' }))
    } else await sendBack(server, fate.unprocessed, o)
  }
  return Object.assign(faults, await listening(proxy))
}

interface Meeting {
  readonly incoming: IncomingMessage
  readonly answer: ServerResponse
  readonly body: Buffer
  readonly table: string
  readonly puts: readonly Put[]
}

interface Put {
  readonly PutRequest: { readonly Item: WireItem }
}

async function sendBack(
  server: DynamoAddress,
  comesBack: (item: WireItem, index: number) => boolean,
  { answer, table, puts }: Meeting,
): Promise<void> {
  const back = puts.filter((put, i) => comesBack(put.PutRequest.Item, i))
  const taken = puts.filter((put) => !back.includes(put))
  if (taken.length > 0) await dynamoCall(server, 'BatchWriteItem', { RequestItems: { [table]: taken } })
  answer.writeHead(200, { 'content-type': 'application/x-amz-json-1.0' })
  answer.end(JSON.stringify({ UnprocessedItems: back.length > 0 ? { [table]: back } : {} }))
}

function putsOf(body: Buffer): [string, readonly Put[]] {
  const { RequestItems } = JSON.parse(body.toString('utf8')) as { RequestItems: Record<string, readonly Put[]> }
  return Object.entries(RequestItems)[0] ?? ['', []]
}

async function bytesOf(incoming: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of incoming as AsyncIterable<Buffer>) chunks.push(chunk)
  return Buffer.concat(chunks)
}

async function forward(server: DynamoAddress, incoming: IncomingMessage, body: Buffer): Promise<Response> {
  const headers = Object.entries(incoming.headers).flatMap(([name, value]): [string, string][] =>
    ['host', 'connection', 'content-length'].includes(name) ? [] : [[name, String(value)]],
  )
  return fetch(server.endpoint, { method: 'POST', headers, body: new Uint8Array(body) })
}

async function pass(
  server: DynamoAddress,
  incoming: IncomingMessage,
  { body, answer }: { readonly body: Buffer; readonly answer: ServerResponse },
): Promise<Buffer> {
  const got = await forward(server, incoming, body)
  answer.writeHead(got.status, { 'content-type': 'application/x-amz-json-1.0' })
  const bytes = Buffer.from(await got.arrayBuffer())
  answer.end(bytes)
  return bytes
}
