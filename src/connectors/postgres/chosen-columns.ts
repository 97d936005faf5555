import type { CopyOptions } from '../../core/options.ts'

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
  const chosen = select.map((name) => {
    const exact = columns.find((column) => column.name === name)
    const loose = columns.filter((column) => column.name.toLowerCase() === name.toLowerCase())
    return exact ?? (loose.length === 1 ? loose[0] : undefined)
  })
  const found = chosen.filter((column) => column !== undefined)
  return found.length === select.length && new Set(found).size === found.length ? found : columns
}
