import type { Batch, BatchForm, ColumnsBatch, CsvBatch, RowsBatch, Value } from '../core/batch.ts'
import { rowCount } from '../core/batch.ts'
import { SluiceError } from '../core/errors.ts'
import type { CopyOptions } from '../core/options.ts'
import type { RecordPlan } from '../core/record-plan.ts'
import { NEUTRAL_TYPES } from '../core/schema.ts'
import type { Column, NeutralType, Schema } from '../core/schema.ts'
import { compileReplacements, decodeBinary } from './value-rules.ts'
import type { ValueRule } from './value-rules.ts'

/** What the flags of the group "mapping" make of a schema and of each batch. */
export interface Mapping {
  readonly schema: Schema
  /** For each column of `schema` the source's own name for it; null for a constant. */
  readonly sources: readonly (string | null)[]
  /** Forms that it can pass on: parsed rows always; raw CSV where all values stay text, and there is somebody to write its records anew. */
  readonly forms: readonly BatchForm[]
  apply(batch: Batch): Batch
  /** The values that some of its columns have in a batch, each column's in the order of the rows: what types are inferred of. */
  values(batch: Batch, isWanted: (name: string) => boolean): readonly ColumnValues[]
}

interface ColumnValues {
  readonly name: string
  readonly values: readonly Value[]
}

/** Those who know how CSV is written, which the engine does not. Both throw SLUICE_CSV_FIELD_COUNT with the place. */
export interface CsvMeans {
  rewrite(batch: CsvBatch, plan: RecordPlan): CsvBatch
  /** Of the columns at these positions, column by column. */
  values(batch: CsvBatch, positions: readonly number[]): readonly (readonly (string | null)[])[]
}

interface Step {
  /** Position in the source batch; null for a constant. */
  readonly from: number | null
  readonly constant: string | null
  readonly rules: readonly ValueRule[]
}

interface Layout {
  readonly columns: readonly string[]
  readonly steps: readonly Step[]
  readonly skipIfEmpty: readonly number[]
  readonly plan: RecordPlan
}

/** Flags of a mapping, taken apart: names still as the user wrote them. */
interface Wishes {
  readonly select: readonly string[] | null
  readonly renames: ReadonlyMap<string, string>
  readonly constants: ReadonlyMap<string, string>
  readonly types: ReadonlyMap<string, string>
  readonly replacements: ReadonlyMap<string, readonly ValueRule[]>
  readonly skipIfEmpty: readonly string[]
}

/**
 * Whether the options ask for anything but the source's own columns, in which case bytes can't be copied as they are.
 */
export function mapsColumns(options: CopyOptions): boolean {
  return [options.select, options.rename, options.type, options.set, options.skipIfEmpty, options.replace].some(
    (list) => list !== undefined && list.length > 0,
  )
}

/**
 * Compiles the mapping. Names are matched exactly, else without case where that is unambiguous; `--type`, `--replace` and
 * `--skip-if-empty` take the old or the new name of a renamed column.
 *
 * @throws SLUICE_COLUMN_MISSING, SLUICE_USAGE
 */
export function compileMapping(schema: Schema, options: CopyOptions, csv?: CsvMeans): Mapping {
  const wishes = readWishes(options)
  const names = schema.columns.map((column) => column.name)
  const layout = layOut(names, wishes, true)
  const columns = layout.columns.map((name, i): Column => {
    const from = layout.steps[i]?.from
    const source = from === null || from === undefined ? undefined : schema.columns[from]
    const wanted = wishes.types.get(name) ?? (source === undefined ? undefined : wishes.types.get(source.name))
    return withType({ ...source, name }, wanted)
  })
  const layoutOf = layoutsByColumns(names, layout, wishes)
  // A later file may have columns that were not chosen: raw rows would bring them along.
  const isSame = schema.fixed === true && layout.steps.every((step, i) => step.from === i)
  const raw = (wishes.select === null || isSame) && keepsValues(layout, names.length)
  const texts = csv !== undefined && [...wishes.types.values()].every((type) => typeRules(type).length === 0)
  return {
    schema: {
      ...(schema.typed === undefined ? {} : { typed: schema.typed }),
      ...(schema.fixed === undefined ? {} : { fixed: schema.fixed }),
      columns,
      named: schema.named || wishes.select !== null || wishes.renames.size > 0,
    },
    sources: layout.steps.map((step) => (step.from === null ? null : (names[step.from] ?? null))),
    forms: [
      ...(raw ? (['bytes', 'csv'] as const) : texts ? (['csv'] as const) : []),
      ...(wishes.types.size === 0 && movesOnly(layout) ? (['columns'] as const) : []),
      'rows',
    ],
    apply: (batch) => {
      if (batch.form === 'bytes') return batch
      const own = layoutOf(batch.columns)
      if (batch.form === 'rows') return mapRows(batch, own)
      if (batch.form === 'columns') return mapVectors(batch, own)
      if (!raw && csv !== undefined) return csv.rewrite(batch, own.plan)
      const renamed = batch.columns.map((_, i) => own.columns[own.steps.findIndex((step) => step.from === i)] ?? '')
      return { ...batch, columns: renamed }
    },
    values: (batch, isWanted) =>
      batch.form === 'rows' || (batch.form === 'csv' && csv !== undefined)
        ? valuesOf(batch, narrow(layoutOf(batch.columns), isWanted), csv)
        : [],
  }
}

/** A layout for each list of columns that batches have: files under a prefix may differ. */
function layoutsByColumns(
  names: readonly string[],
  layout: Layout,
  wishes: Wishes,
): (columns: readonly string[]) => Layout {
  const layouts = new Map<string, Layout>([[names.join('\0'), layout]])
  return (columns) => {
    const key = columns.join('\0')
    const found = layouts.get(key) ?? layOut(columns, wishes, false)
    layouts.set(key, found)
    return found
  }
}

function narrow(
  layout: Layout,
  isWanted: (name: string) => boolean,
): Pick<Layout, 'columns' | 'steps' | 'skipIfEmpty'> {
  const wanted = layout.columns.map((name) => isWanted(name))
  return {
    columns: layout.columns.filter((_, i) => wanted[i]),
    steps: layout.steps.filter((_, i) => wanted[i]),
    skipIfEmpty: layout.skipIfEmpty,
  }
}

function valuesOf(
  batch: RowsBatch | CsvBatch,
  layout: Pick<Layout, 'columns' | 'steps' | 'skipIfEmpty'>,
  csv: CsvMeans | undefined,
): ColumnValues[] {
  const { columns, steps, skipIfEmpty } = layout
  const positions = [...new Set([...steps.flatMap(({ from }) => from ?? []), ...skipIfEmpty])]
  const read: readonly (readonly Value[])[] =
    batch.form === 'csv'
      ? (csv?.values(batch, positions) ?? [])
      : positions.map((at) => batch.rows.map((row) => row[at]))
  const column = (at: number): readonly Value[] => read[positions.indexOf(at)] ?? []
  const tested = skipIfEmpty.map(column)
  const all = Array.from({ length: tested.length === 0 ? 0 : rowCount(batch) }, (_, row) => row)
  const left = all.filter((row) => !tested.some((other) => isEmpty(other[row])))
  const kept = (values: readonly Value[]): readonly Value[] =>
    tested.length === 0 ? values : left.map((row) => values[row])
  // One value of a constant tells as much as many do.
  const some = tested.length === 0 ? rowCount(batch) > 0 : left.length > 0
  return steps.map(({ from, constant, rules }, i) => {
    const own = from !== null ? kept(column(from)) : some ? [constant] : []
    const changed = rules.length === 0 ? own : own.map((value) => rules.reduce((last, rule) => rule(last), value))
    return { name: columns[i] ?? '', values: changed }
  })
}

/** The mapping of a batch. @throws what the mapping objects to, with the name of the batch's file */
export function applyMapping(mapping: Mapping, batch: Batch, url: string): Batch {
  return placed(url, () => mapping.apply(batch))
}

/** What is done to a file's rows. @throws what it throws, with the name of the file */
export function placed<T>(url: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw error instanceof SluiceError ? error.at({ url }) : error
  }
}

function keepsValues(layout: Layout, sourceColumns: number): boolean {
  return (
    layout.skipIfEmpty.length === 0 &&
    layout.steps.length === sourceColumns &&
    layout.steps.every((step) => step.from !== null && step.rules.length === 0)
  )
}

/** Columns are chosen and renamed, and no value is looked at. */
function movesOnly(layout: Layout): boolean {
  return layout.skipIfEmpty.length === 0 && layout.steps.every((step) => step.from !== null && step.rules.length === 0)
}

function mapVectors(batch: ColumnsBatch, layout: Layout): ColumnsBatch {
  const vectors = layout.steps.flatMap((step) => batch.vectors[step.from ?? -1] ?? [])
  return { ...batch, columns: layout.columns, vectors }
}

function mapRows(batch: RowsBatch, layout: Layout): RowsBatch {
  const rows: (readonly Value[])[] = []
  const places: RowsBatch['places'][number][] = []
  let filtered = batch.filtered
  for (const [i, row] of batch.rows.entries()) {
    const place = batch.places[i]
    if (place === undefined) continue
    if (layout.skipIfEmpty.some((at) => isEmpty(row[at]))) {
      filtered += 1
      continue
    }
    const mapped = new Array<Value>(layout.steps.length)
    for (const [at, step] of layout.steps.entries())
      mapped[at] =
        step.rules.length === 0 && step.from !== null
          ? row[step.from]
          : mapValue(row, step, { place, column: layout.columns[at] ?? '' })
    rows.push(mapped)
    places.push(place)
  }
  return { ...batch, columns: layout.columns, rows, places, filtered }
}

function mapValue(
  row: readonly Value[],
  step: Step,
  where: { place: RowsBatch['places'][number]; column: string },
): Value {
  let value: Value = step.from === null ? step.constant : row[step.from]
  for (const rule of step.rules) {
    try {
      value = rule(value)
    } catch (error) {
      throw error instanceof SluiceError ? error.at({ ...where.place, column: where.column }) : error
    }
  }
  return value
}

function isEmpty(value: Value): boolean {
  return value === undefined || value === null || value === ''
}

function layOut(names: readonly string[], wishes: Wishes, strict: boolean): Layout {
  const at = (name: string): number | undefined => findName(names, wishes.renames, name)
  const chosen =
    wishes.select === null ? names.map((_, i) => i) : wishes.select.map((name) => mustFind(at(name), name, names))
  const steps: Step[] = []
  const columns: string[] = []
  for (const i of chosen) {
    const name = names[i] ?? ''
    const renamed = wishes.renames.get(name) ?? renameWithoutCase(wishes.renames, name) ?? name
    columns.push(renamed)
    const rules = [...wishes.replacements].filter(([wanted]) => at(wanted) === i).flatMap(([, own]) => own)
    const type = wishes.types.get(renamed) ?? wishes.types.get(name)
    if (type !== undefined) rules.push(...typeRules(type))
    steps.push({ from: i, constant: null, rules })
  }
  for (const [name, constant] of wishes.constants) addConstant(name, constant, { columns, steps })
  if (strict) checkNames(names, wishes, columns)
  const skipIfEmpty = wishes.skipIfEmpty.flatMap((name) => {
    const found = at(name)
    return found === undefined ? [] : [found]
  })
  return { columns, steps, skipIfEmpty, plan: { columns, fields: steps.map(recordField), skipIfEmpty } }
}

/** Rules of text alone: who makes bytes of it is not asked for a plan. */
function recordField({ from, constant, rules }: Step): RecordPlan['fields'][number] {
  const change = (text: string): string => {
    const value = rules.reduce<Value>((last, rule) => rule(last), text)
    return typeof value === 'string' ? value : text
  }
  return { from, constant, change: rules.length === 0 ? null : change }
}

function addConstant(name: string, constant: string, layout: { columns: string[]; steps: Step[] }): void {
  const index = layout.columns.indexOf(name)
  const step: Step = { from: null, constant, rules: [] }
  if (index >= 0) layout.steps[index] = step
  else {
    layout.columns.push(name)
    layout.steps.push(step)
  }
}

function checkNames(names: readonly string[], wishes: Wishes, columns: readonly string[]): void {
  const known = (name: string): boolean => findName(names, wishes.renames, name) !== undefined || columns.includes(name)
  const named: [string, Iterable<string>][] = [
    ['--rename', wishes.renames.keys()],
    ['--replace', wishes.replacements.keys()],
    ['--skip-if-empty', wishes.skipIfEmpty],
    ['--type', wishes.types.keys()],
  ]
  for (const [flag, list] of named) for (const name of list) if (!known(name)) throw missingColumn(name, names, flag)
  const twice = nameTwice(columns)
  // Where nobody chose or changed any, whoever takes them judges: CSV may have two of one name.
  if (twice !== undefined && columns.join('\0') !== names.join('\0'))
    throw new SluiceError('SLUICE_USAGE', `two columns would be called "${twice}"`, {
      hint: 'mend --select, --rename or --set',
    })
}

/** The first name that more than one column has. */
export function nameTwice(names: readonly string[]): string | undefined {
  return names.find((name, i) => names.indexOf(name) !== i)
}

function renameWithoutCase(renames: ReadonlyMap<string, string>, name: string): string | undefined {
  const same = [...renames].filter(([old]) => old.toLowerCase() === name.toLowerCase())
  return same.length === 1 ? same[0]?.[1] : undefined
}

function findName(names: readonly string[], renames: ReadonlyMap<string, string>, name: string): number | undefined {
  const exact = names.indexOf(name)
  if (exact >= 0) return exact
  const old = [...renames].find(([, renamed]) => renamed === name)?.[0]
  if (old !== undefined && names.includes(old)) return names.indexOf(old)
  const loose = names.flatMap((own, i) => (own.toLowerCase() === name.toLowerCase() ? [i] : []))
  return loose.length === 1 ? loose[0] : undefined
}

function mustFind(index: number | undefined, name: string, names: readonly string[]): number {
  if (index === undefined) throw missingColumn(name, names, '--select')
  return index
}

function missingColumn(name: string, names: readonly string[], flag: string): SluiceError {
  return new SluiceError('SLUICE_COLUMN_MISSING', `${flag} names column "${name}", which the source does not have`, {
    hint: `its columns are ${names.slice(0, 30).join(', ')}${names.length > 30 ? ', …' : ''}`,
  })
}

function readWishes(options: CopyOptions): Wishes {
  const replacements = new Map<string, ValueRule[]>()
  for (const text of options.replace ?? []) {
    const { name, value } = nameAndValue(text, '--replace column=/regex/text/')
    const rules = replacements.get(name) ?? []
    rules.push(compileReplacements(value))
    replacements.set(name, rules)
  }
  return {
    select: options.select === undefined || options.select.length === 0 ? null : options.select,
    renames: pairs(options.rename, '--rename old=new'),
    constants: pairs(options.set, '--set column=constant'),
    types: pairs(options.type, '--type column=TYPE'),
    replacements,
    skipIfEmpty: options.skipIfEmpty ?? [],
  }
}

function pairs(list: readonly string[] | undefined, form: string): Map<string, string> {
  const result = new Map<string, string>()
  for (const text of list ?? []) {
    const { name, value } = nameAndValue(text, form)
    if (result.has(name))
      throw new SluiceError('SLUICE_USAGE', `${form.split(' ')[0] ?? ''} is given twice for column "${name}"`)
    result.set(name, value)
  }
  return result
}

function nameAndValue(text: string, form: string): { name: string; value: string } {
  const split = text.indexOf('=')
  if (split < 1) throw new SluiceError('SLUICE_USAGE', `"${text}" is not of the form ${form}`)
  return { name: text.slice(0, split), value: text.slice(split + 1) }
}

function typeRules(type: string): readonly ValueRule[] {
  if (type === 'binary' || type === 'binary:base64') return [decodeBinary('base64')]
  return type === 'binary:hex' ? [decodeBinary('hex')] : []
}

function withType(column: Column, wanted: string | undefined): Column {
  if (wanted === undefined) return column
  const neutral = wanted.startsWith('binary:') ? 'binary' : wanted
  // How the source lays the column out, and names its type, is no longer how it is wanted.
  const { layout: _, nativeType: __, nativeTo: ___, ...kept } = column
  return isNeutral(neutral) ? { ...kept, type: neutral } : { ...kept, nativeType: wanted }
}

function isNeutral(name: string): name is NeutralType {
  return NEUTRAL_TYPES.some((own) => own === name)
}
