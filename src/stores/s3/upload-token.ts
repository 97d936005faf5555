import { SluiceError } from '../../core/errors.ts'
import type { Json } from '../../core/job.ts'
import type { WrittenPart } from '../../core/ports.ts'

/**
 * What is recorded of an object in the making: the intent and the writer's token are the same JSON.
 * In order: `known` and `sinceMs` before Create, `uploadId` after it, `completing` before Complete.
 */
export interface UploadToken {
  readonly store: 's3'
  /** `put`: one request, which leaves nothing half done. */
  readonly kind: 'put' | 'multipart'
  /** `bucket/key` */
  readonly key: string
  /** Uploads for this very key that were there before ours; null where the store would not say. */
  readonly known: readonly string[] | null
  /** The store's own clock at that time, in milliseconds since 1970. */
  readonly sinceMs: number
  readonly uploadId: string | null
  readonly completing: Completing | null
}

export interface Completing {
  /** The ETag that the object will have, where it can be told from its parts. */
  readonly etag: string | null
  /** When the upload began, by the store's clock. */
  readonly sinceMs: number
  readonly bytes: number
  readonly parts: readonly WrittenPart[]
}

export function tokenToJson(token: UploadToken): Json {
  const { store, kind, key, known, sinceMs, uploadId, completing } = token
  const parts = completing?.parts.map(({ number, offset, bytes, etag }): Json => [number, offset, bytes, etag]) ?? []
  return {
    store,
    kind,
    key,
    known,
    sinceMs,
    uploadId,
    completing:
      completing === null
        ? null
        : { etag: completing.etag, sinceMs: completing.sinceMs, bytes: completing.bytes, parts },
  }
}

/** @throws SLUICE_STATE where the JSON is not what this store recorded */
export function tokenFromJson(json: Json): UploadToken {
  const bad = (): SluiceError => new SluiceError('SLUICE_STATE', 'the record of an unfinished S3 upload is damaged')
  const record = asRecord(json)
  if (record === null || record.store !== 's3' || typeof record.key !== 'string') throw bad()
  const { kind, known, uploadId } = record
  if (kind !== 'put' && kind !== 'multipart') throw bad()
  return {
    store: 's3',
    kind,
    key: record.key,
    known: Array.isArray(known) ? known.filter((id): id is string => typeof id === 'string') : null,
    sinceMs: typeof record.sinceMs === 'number' ? record.sinceMs : 0,
    uploadId: typeof uploadId === 'string' ? uploadId : null,
    completing: completingFrom(record.completing),
  }
}

function completingFrom(json: Json | undefined): Completing | null {
  const record = asRecord(json)
  if (record === null || !Array.isArray(record.parts)) return null
  const parts = record.parts.flatMap((part: Json): WrittenPart[] => {
    if (!Array.isArray(part)) return []
    const [number, offset, bytes, etag] = part as readonly Json[]
    if (typeof number !== 'number' || typeof offset !== 'number' || typeof bytes !== 'number') return []
    return [{ number, offset, bytes, etag: typeof etag === 'string' ? etag : null }]
  })
  const bytes = typeof record.bytes === 'number' ? record.bytes : 0
  const sinceMs = typeof record.sinceMs === 'number' ? record.sinceMs : 0
  return { etag: typeof record.etag === 'string' ? record.etag : null, sinceMs, bytes, parts }
}

function asRecord(json: Json | undefined): { readonly [key: string]: Json } | null {
  return typeof json === 'object' && json !== null && !Array.isArray(json)
    ? (json as { readonly [key: string]: Json })
    : null
}
