/* A thread that puts the rows whose keys are its own: with connections, a window of requests and keys under way of its own. What is shared is the budget. */
import { parentPort, workerData } from 'node:worker_threads'
import { createCredentialSource, type AwsCredentials, type CredentialSource } from '../../../aws/credentials.ts'
import { SluiceError, toSluiceError } from '../../../core/errors.ts'
import { recordCursor } from '../../../formats/csv/record-cursor.ts'
import { MOST_COLUMN_SETS } from '../item/by-columns.ts'
import { CapacityBudget } from './capacity.ts'
import { DynamoClient } from '../client.ts'
import { InFlightLimit } from './in-flight.ts'
import { SeenKeys } from './key-seen.ts'
import { Progress } from './monotonic.ts'
import type { ExtentPuts } from './put-batch.ts'
import { PutTrace } from './put-trace.ts'
import { lowerLastBlock } from './put-message.ts'
import type { CsvRows, FromPutThread, ItemRows, PutThreadData, StaleCredentials, ToPutThread } from './put-message.ts'
import { putItem, putRecord } from './put-record.ts'
import { PutWindow } from './put-window.ts'
import { fromThreadError, toThreadError } from './thread-error.ts'
import { CsvItemEncoder } from '../item/wire-json.ts'

/** Retries are told together: a table that refuses makes thousands a second. */
const TELL_RETRIES_MS = 100

const data = workerData as PutThreadData
const sorted = data.keys.length > 1

function tell(message: FromPutThread): void {
  parentPort?.postMessage(message)
}

// ---- credentials --------------------------------------------------------------------------------------------------

let asked: { readonly resolve: (found: AwsCredentials) => void; readonly reject: (error: unknown) => void } | null =
  null
let latest: AwsCredentials | null = null
let stale: StaleCredentials | null = null

/** Credentials are fetched in the main thread, for all of them; at most one question at a time, as the source sees to. */
function askForCredentials(): Promise<AwsCredentials> {
  return new Promise((resolve, reject) => {
    asked = { resolve, reject }
    tell({ kind: 'credentials', stale })
  })
}

function credentialSource(): CredentialSource {
  const source = createCredentialSource({ env: {}, signRequest: data.signRequest, load: askForCredentials })
  return {
    get: () => source.get(),
    invalidate: () => {
      stale = latest === null ? null : { accessKeyId: latest.accessKeyId, sessionToken: latest.sessionToken }
      source.invalidate()
    },
  }
}

// ---- retries ------------------------------------------------------------------------------------------------------

let [retries, throttles] = [0, 0]
let tellsRetries = false

function retried({ throttled }: { readonly throttled: boolean }): void {
  retries += 1
  if (throttled) throttles += 1
  if (tellsRetries) return
  tellsRetries = true
  setTimeout(tellRetries, TELL_RETRIES_MS)
}

function tellRetries(): void {
  tellsRetries = false
  if (retries > 0) tell({ kind: 'retried', retries, throttles })
  retries = 0
  throttles = 0
}

// ---- rows ---------------------------------------------------------------------------------------------------------

const client = new DynamoClient({
  target: { ...data, endpoint: data.endpoint === null ? null : new URL(data.endpoint) },
  credentials: credentialSource(),
  retryForMs: data.retryForMs,
  // Nothing in a put warns.
  reporter: { warn: () => undefined, retried },
  maxConnections: data.inFlight.max,
})
const window = new PutWindow({
  client,
  table: data.table,
  keys: data.keys,
  limit: new InFlightLimit(data.inFlight),
  capacity: data.writeUnits === null ? null : new CapacityBudget(data.writeUnits, data.shared.units),
  dedupe: data.dedupe,
  retryForMs: data.retryForMs,
  // It is ended from outside.
  signal: new AbortController().signal,
  progress: new Progress(data.shared.progress),
  trace: new PutTrace(data.shared.trace),
  sharers: data.threads,
})
const seen = data.dedupe === 'error' ? new SeenKeys(data.threads) : null
const encoders = new Map<number, CsvItemEncoder>()
let puts: ExtentPuts = { pending: 0, accepted: 0, superseded: 0 }
let bytes = 0

async function take(message: ToPutThread): Promise<void> {
  switch (message.kind) {
    case 'columns':
      if (message.id % MOST_COLUMN_SETS === 0) encoders.clear()
      encoders.set(message.id, new CsvItemEncoder(message.attributes, { nulls: data.nulls, sorted }))
      break
    case 'begin':
      puts = { pending: 0, accepted: 0, superseded: 0 }
      bytes = 0
      window.begin()
      break
    case 'csv':
    case 'items':
      if (message.block <= Atomics.load(data.shared.lastBlock, 0)) await putRows(message)
      tell({ kind: 'done', block: message.block })
      break
    case 'written':
      window.written()
      void settle(message.extent, puts, bytes).catch(fail)
      break
    default:
      break
  }
}

async function putRows(message: CsvRows | ItemRows): Promise<void> {
  const rows = message.kind === 'csv' ? message.starts : message.rows
  const put = message.kind === 'csv' ? recordPutter(message) : itemPutter(message)
  for (let i = 0; i < rows.length; i += 1) {
    const row = rows[i] as number
    try {
      bytes += put(row, i)
    } catch (error) {
      if (!(error instanceof SluiceError)) throw error
      lowerLastBlock(data.shared, message.block)
      tell({ kind: 'bad', block: message.block, row, error: toThreadError(error) })
      return
    }
    if (window.open.isFull) await window.makeRoom()
  }
}

type Putter = (row: number, index: number) => number

function recordPutter({ columns, csv, bytes: all }: CsvRows): Putter {
  const encoder = encoders.get(columns)
  if (encoder === undefined) throw new Error('rows of columns that were not told')
  const cursor = recordCursor(all, csv)
  const place = { window, seen, puts }
  return (start) => {
    cursor.seek(start)
    if (cursor.next() !== 'row') throw new Error('no row is where one was told to be')
    return putRecord(cursor, encoder, place)
  }
}

function itemPutter({ bytes: all, ends, keys }: ItemRows): Putter {
  const place = { window, seen, puts }
  return (_, i) => {
    const from = i === 0 ? 0 : (ends[i - 1] as number)
    return putItem(all.subarray(from, ends[i]), keys[i] as string, place)
  }
}

async function settle(extent: number, own: ExtentPuts, ownBytes: number): Promise<void> {
  await window.settled(own)
  tellRetries()
  const { accepted, superseded } = own
  tell({ kind: 'settled', extent, counts: { accepted, superseded, bytes: ownBytes } })
}

let failed = false

function fail(error: unknown): void {
  if (failed) return
  failed = true
  window.stop(error)
  tellRetries()
  tell({ kind: 'failed', error: toThreadError(toSluiceError(error)) })
}

/** What is told is taken in its order; no more than the main thread has blocks, and a few words an extent. */
let chain: Promise<void> = Promise.resolve()

parentPort?.on('message', (message: ToPutThread) => {
  if (message.kind === 'credentials') {
    latest = message.credentials
    asked?.resolve(latest)
  } else if (message.kind === 'no-credentials') asked?.reject(fromThreadError(message.error))
  else chain = chain.then(() => (failed ? undefined : take(message))).catch(fail)
})
tell({ kind: 'ready' })
