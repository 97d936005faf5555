import { nearest as nearestOf } from '../../core/nearest.ts'

/** Of `candidates` the one spelled most like `name`; null where none is near. Names of columns and types are short: two letters of any may be wrong. */
export function nearest(name: string, candidates: Iterable<string>): string | null {
  return nearestOf(name, [...candidates], 2)
}
