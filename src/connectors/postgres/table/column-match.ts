import { SluiceError } from '../../../core/errors.ts'
import { shellQuote } from '../../../core/shell-quote.ts'
import { nearest } from '../nearest.ts'
import type { TableColumn, TableDescription } from './table.ts'

/**
 * The table's column for each of the source's, in the source's order: by name, case-sensitive then not; or by position among the
 * columns that take values.
 *
 * @throws SLUICE_COLUMN_MISSING, SLUICE_COLUMN_GENERATED
 */
export function matchColumns(
  names: readonly string[],
  table: TableDescription,
  byPosition: boolean,
): readonly TableColumn[] {
  const matched = byPosition ? matchByPosition(names, table) : matchByName(names, table)
  const generated = matched.filter((column) => column.generated)
  if (generated.length > 0)
    throw new SluiceError(
      'SLUICE_COLUMN_GENERATED',
      `the source has values for what ${tableName(table)} generates itself: ${list(generated.map((column) => column.name))}`,
      {
        hint: leaveOut(matched.filter((column) => !column.generated).map((column) => column.name)),
      },
    )
  const twice = matched.find((column, i) => matched.indexOf(column) !== i)
  if (twice !== undefined)
    throw new SluiceError(
      'SLUICE_COLUMN_MISSING',
      `two columns of the source go to ${tableName(table)}.${twice.name}`,
      { hint: 'use --select or --rename' },
    )
  // A source without columns (0 bytes) has no rows either.
  if (names.length === 0) return matched
  const unfilled = table.columns.filter(
    (column) =>
      !matched.includes(column) &&
      !column.nullable &&
      !column.hasDefault &&
      !column.generated &&
      column.identity === null,
  )
  if (unfilled.length > 0)
    throw new SluiceError(
      'SLUICE_COLUMN_MISSING',
      `the source has nothing for ${list(unfilled.map((column) => column.name))} of ${tableName(table)}, which takes no NULL and has no default`,
      {
        hint: 'use --rename old=new or --set column=constant',
      },
    )
  return matched
}

/** The column of this name: exactly, else without case where that is unambiguous. */
export function findColumn<T extends { readonly name: string }>(columns: readonly T[], name: string): T | undefined {
  const exact = columns.find((column) => column.name === name)
  const loose = columns.filter((column) => column.name.toLowerCase() === name.toLowerCase())
  return exact ?? (loose.length === 1 ? loose[0] : undefined)
}

function matchByPosition(names: readonly string[], table: TableDescription): readonly TableColumn[] {
  const filled = table.columns.filter((column) => !column.generated)
  if (names.length > filled.length)
    throw new SluiceError(
      'SLUICE_COLUMN_MISSING',
      `the source has ${names.length} columns, and ${tableName(table)} has ${filled.length} that take values`,
      {
        hint: `name those that are meant with --columns, or choose with --select`,
      },
    )
  return filled.slice(0, names.length)
}

function matchByName(names: readonly string[], table: TableDescription): readonly TableColumn[] {
  const missing: string[] = []
  const matched = names.flatMap((name) => {
    const found = findColumn(table.columns, name)
    if (found === undefined) missing.push(name)
    return found === undefined ? [] : [found]
  })
  if (missing.length === 0) return matched
  throw new SluiceError('SLUICE_COLUMN_MISSING', `${tableName(table)} has no column ${list(missing)}`, {
    hint: missingHint(names, missing, table),
  })
}

function missingHint(names: readonly string[], missing: readonly string[], table: TableDescription): string {
  const delimiter = delimiterHint(names)
  if (delimiter !== null) return delimiter
  const own = table.columns.map((column) => column.name)
  const cut = cutName(missing, own)
  if (cut !== null) return cut
  if (missing.length === names.length)
    return 'if CSV has no names in its first line, say --no-header; else --by-position, --rename or --select'
  const likely = nearest(missing[0] ?? '', own)
  const kept = names.filter((name) => !missing.includes(name))
  return likely === null || names.includes(likely)
    ? leaveOut(kept)
    : `${shellQuote(['--rename', `${missing[0] ?? ''}=${likely}`])}, or ${leaveOut(kept)}`
}

/** PostgreSQL cuts names at 63 bytes when a table is made, and COPY would not know the whole ones. */
function cutName(missing: readonly string[], own: readonly string[]): string | null {
  for (const name of missing) {
    const cut = own.find((column) => Buffer.byteLength(column) >= 60 && name.startsWith(column))
    if (cut !== undefined)
      return `PostgreSQL has cut the name at 63 bytes: ${shellQuote(['--rename', `${name}=${cut}`])}`
  }
  return null
}

/** What a lone column's name may have between its parts, as `--delimiter` takes it. */
const DELIMITERS: readonly (readonly [string, string])[] = [
  [';', ';'],
  ['\t', String.raw`\t`],
  ['|', '|'],
  [',', ','],
]

/** One name with another delimiter in it is a header that was not divided; `sep=;` is Excel's line about it, before the header. */
function delimiterHint(names: readonly string[]): string | null {
  const [name = ''] = names
  const told = names.length === 1 ? /^sep=(.)$/.exec(name) : null
  if (told !== null)
    return `the first line only says what is between fields: ${shellQuote(['--skip-lines', '1', '--delimiter', told[1] ?? ''])}`
  const found = names.length === 1 ? DELIMITERS.find(([delimiter]) => name.includes(delimiter)) : undefined
  return found === undefined
    ? null
    : `the header has one name only: ${shellQuote(['--delimiter', found[1]])} may divide it`
}

function leaveOut(kept: readonly string[]): string {
  return `leave it out: ${shellQuote(['--select', kept.join(',')])}`
}

function tableName(table: TableDescription): string {
  return `${table.schema}.${table.name}`
}

function list(names: readonly string[]): string {
  const shown = names.slice(0, 20).map((name) => `"${name}"`)
  return shown.join(', ') + (names.length > shown.length ? ` and ${names.length - shown.length} more` : '')
}
