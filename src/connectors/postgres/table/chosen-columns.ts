import type { CopyOptions } from '../../../core/options.ts'
import { findColumn } from './column-match.ts'

/**
 * The columns of a table that `--select` names, in its order, so that the server sends no others (and wants no right to them); all of them where other
 * flags may need what is not selected, or a name is not to be found: the mapping, which does the rest, tells that.
 */
export function chosenColumns<T extends { readonly name: string }>(
  columns: readonly T[],
  options: CopyOptions,
): readonly T[] {
  const { select = [], replace = [], type = [], set = [], skipIfEmpty = [] } = options
  if (select.length === 0 || [replace, type, set, skipIfEmpty].some((list) => list.length > 0)) return columns
  const found = select.flatMap((name) => findColumn(columns, name) ?? [])
  return found.length === select.length && new Set(found).size === found.length ? found : columns
}
