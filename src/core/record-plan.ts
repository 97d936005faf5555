/** One field of a record that is written anew. */
interface RewrittenField {
  /** Position in the batch; null for a constant. */
  readonly from: number | null
  readonly constant: string | null
  /** What becomes of a value that is there; null where nothing does. */
  readonly change: ((text: string) => string) | null
}

/** What a mapping makes of the records of a CSV batch: the engine says it, and whoever knows how CSV is written does it. */
export interface RecordPlan {
  /** Their names afterwards, in the order of `fields`. */
  readonly columns: readonly string[]
  readonly fields: readonly RewrittenField[]
  /** Positions in the batch: a record is left out where one of these is empty. */
  readonly skipIfEmpty: readonly number[]
}
