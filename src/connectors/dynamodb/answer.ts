import { SluiceError } from '../../core/errors.ts'

/** A JSON object of an answer, whose members are looked at one by one. */
export type Answer = Readonly<Record<string, unknown>>

/** What is asked of DynamoDB's client besides batches of puts: one operation, one parsed answer. Retries happen inside. */
export interface DynamoCalls {
  call(operation: string, body: object, o: { readonly signal: AbortSignal }): Promise<unknown>
}

/** @throws SLUICE_PROTOCOL where it is no JSON object */
export function answerOf(value: unknown, what: string): Answer {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Answer
  throw new SluiceError('SLUICE_PROTOCOL', `DynamoDB's answer has no ${what}`)
}

/** The objects of a list; none where there is no list. */
export function listOf(value: unknown): readonly Answer[] {
  return Array.isArray(value) ? value.map((item) => answerOf(item, 'object in a list')) : []
}

/** @throws SLUICE_PROTOCOL where it is no text */
export function textOf(value: unknown, what: string): string {
  if (typeof value === 'string') return value
  throw new SluiceError('SLUICE_PROTOCOL', `DynamoDB's answer has no ${what}`)
}

/** A number; null where there is none. */
export function numberOf(value: unknown): number | null {
  return typeof value === 'number' ? value : null
}
