import type { Json } from '../../core/job.ts'

/** What the file sinks keep in a job's checkpoint, so that nothing that was begun is forgotten. */
export type UploadEntry =
  | { readonly kind: 'intent'; readonly partition: string; readonly intent: Json }
  | { readonly kind: 'token'; readonly partition: string; readonly token: Json; readonly partBytes: number }
  /** All bytes are in, and what is left is to make them visible. `sealed`: what the sink needs to account for them. */
  | { readonly kind: 'completing'; readonly partition: string; readonly bytes: number; readonly sealed: Json }
  | { readonly kind: 'completed'; readonly partition: string; readonly bytes: number; readonly etag: string | null }
  /** All bytes of all files of a set are in, and what is left is to make them visible, one after the other. */
  | {
      readonly kind: 'publishing'
      readonly partition: ''
      readonly files: readonly PublishedFile[]
      readonly sealed: Json
    }

/** Rows: null for plain bytes. An alias, since interfaces are no Json. */
export type PublishedFile = {
  readonly key: string
  readonly url: string
  readonly bytes: number
  readonly rows: number | null
}

/** A set that an earlier run began to make visible. */
export interface Publication {
  readonly files: readonly PublishedFile[]
  readonly sealed: Json
  /** ETags of those that were through, by key. */
  readonly completed: ReadonlyMap<string, string | null>
}

/** What earlier runs did for one output; the latest attempt's where there were several. */
export interface UploadJournal {
  readonly partition: string
  intents: Json[]
  /** The latest intent or token, which stores make alike: what the output is taken up again by. */
  token: Json | null
  completing: { readonly bytes: number; readonly sealed: Json } | null
  completed: { readonly bytes: number; readonly etag: string | null } | null
}

/** Journals by partition. */
export function readUploads(recorded: readonly Json[]): Map<string, UploadJournal> {
  const journals = new Map<string, UploadJournal>()
  for (const entry of recorded.filter(isUploadEntry)) {
    if (entry.kind === 'publishing') continue
    const journal = journals.get(entry.partition) ?? {
      partition: entry.partition,
      intents: [],
      token: null,
      completing: null,
      completed: null,
    }
    journals.set(entry.partition, journal)
    if (entry.kind === 'intent') {
      journal.intents.push(entry.intent)
      journal.token = entry.intent
    } else if (entry.kind === 'token') {
      journal.token = entry.token
      journal.completing = null
    } else if (entry.kind === 'completing') journal.completing = entry
    else journal.completed = entry
  }
  return journals
}

/** The set that was being made visible when the latest run that wrote ended; null where it did not come that far. */
export function readPublication(recorded: readonly Json[]): Publication | null {
  let found: { files: readonly PublishedFile[]; sealed: Json; completed: Map<string, string | null> } | null = null
  for (const entry of recorded.filter(isUploadEntry)) {
    if (entry.kind === 'publishing') found = { files: entry.files, sealed: entry.sealed, completed: new Map() }
    // A later run began anew.
    else if (entry.kind === 'token') found = null
    else if (entry.kind === 'completed') found?.completed.set(entry.partition, entry.etag)
  }
  return found
}

function isUploadEntry(entry: Json): entry is UploadEntry & Json {
  return (
    typeof entry === 'object' &&
    entry !== null &&
    'kind' in entry &&
    'partition' in entry &&
    typeof entry['partition'] === 'string'
  )
}
