import type { Extent, Json, Receipt } from '../../../core/job.ts'

/** What a load keeps in the job's checkpoint. */
export type LoadEntry =
  /** The table did not exist, and was created by this job. */
  | { readonly kind: 'created'; readonly table: string }
  /** Statements that run once: the transaction in which one runs, by its index; and that it is done. Without an index (older versions): all are. */
  | { readonly kind: 'once'; readonly of: OnceKind; readonly index: number; readonly xid: string }
  | { readonly kind: OnceKind; readonly index?: number }
  /** Before the first COMMIT: each lane's transaction and what is in it. */
  | {
      readonly kind: 'committing'
      readonly lanes: readonly { readonly xid: string; readonly extents: readonly Extent[] }[]
    }

export type OnceKind = 'before-sql' | 'after-sql' | 'truncated'

/** Whether a statement that runs once is done. */
export function isDone(recorded: readonly Json[], kind: OnceKind, index: number): boolean {
  return recorded.some(
    (entry) => isEntry(entry) && entry.kind === kind && (entry.index === undefined || entry.index === index),
  )
}

/** The transaction in which such a statement was run last; null where it never was. */
export function lastXid(recorded: readonly Json[], kind: OnceKind, index: number): string | null {
  const runs = recorded.filter(isEntry).filter((entry) => entry.kind === 'once')
  return runs.findLast((entry) => entry.of === kind && entry.index === index)?.xid ?? null
}

/** The table that an earlier run of the job made, quoted; null where it was there. */
export function createdTable(recorded: readonly Json[]): string | null {
  const made = recorded.filter(isEntry).findLast((entry) => entry.kind === 'created')
  return made?.kind === 'created' ? made.table : null
}

/** Transactions that were about to be committed, with the receipts that each stands for. */
export function committingLanes(
  recorded: readonly Json[],
): readonly { readonly xid: string; readonly receipts: readonly Receipt[] }[] {
  return recorded.flatMap((entry) =>
    isEntry(entry) && entry.kind === 'committing'
      ? entry.lanes.map(({ xid, extents }) => ({
          xid,
          receipts: extents.map((extent) => ({
            extent,
            durable: true,
            rowsWritten: extent.rows,
            bytesWritten: extent.bytes,
            state: null,
          })),
        }))
      : [],
  )
}

/** An entry for `committing`, as JSON. */
export function committingEntry(lanes: readonly { xid: string; receipts: readonly Receipt[] }[]): Json {
  return {
    kind: 'committing',
    lanes: lanes.map(({ xid, receipts }) => ({
      xid,
      extents: receipts.map((receipt) => extentToJson(receipt.extent)),
    })),
  }
}

function extentToJson(extent: Extent): Json {
  return { ...extent, start: { ...extent.start }, end: { ...extent.end } }
}

function isEntry(entry: Json): entry is LoadEntry & { readonly [key: string]: Json } {
  return typeof entry === 'object' && entry !== null && 'kind' in entry
}
