import type { CsvBatch, CsvShape, RowsBatch } from '../../../core/batch.ts'
import { matchColumns } from '../table/column-match.ts'
import { forJsonColumns } from './json-columns.ts'
import type { Adapting } from './json-columns.ts'
import type { SentBatch } from './copy-run.ts'
import type { TableColumn, TableDescription } from '../table/table.ts'
import { createValueChecker } from '../values/value-checks.ts'
import type { BadValue, ValueChecker } from '../values/value-checks.ts'

/** How rows of a source go into a table: columns matched and values checked, worked out once for each list of columns. */
export class TableLoad {
  readonly table: TableDescription
  readonly #byPosition: boolean
  readonly #timeZone: string
  readonly #how: Adapting
  readonly #columns = new Map<string, readonly TableColumn[]>()
  readonly #checkers = new Map<string, ValueChecker | null>()

  constructor(
    table: TableDescription,
    o: { byPosition: boolean; timeZone: string; typed: boolean; warn: (text: string) => void },
  ) {
    this.table = table
    this.#byPosition = o.byPosition
    this.#timeZone = o.timeZone
    const told = new Set<string>()
    const onTextForBytes = ({ name }: TableColumn): void => {
      if (told.has(name)) return
      told.add(name)
      o.warn(`texts go into the bytea column ${name} as they are: --type ${name}=binary if they are base64`)
    }
    this.#how = { typed: o.typed, onTextForBytes }
  }

  /** @throws SLUICE_COLUMN_MISSING, SLUICE_COLUMN_GENERATED */
  columnsFor(names: readonly string[]): readonly TableColumn[] {
    const key = names.join('\0')
    let columns = this.#columns.get(key)
    if (columns === undefined) {
      columns = matchColumns(names, this.table, this.#byPosition)
      this.#columns.set(key, columns)
    }
    return columns
  }

  /** Rows as the columns read them. */
  adapt(batch: RowsBatch, columns: readonly TableColumn[]): RowsBatch {
    return forJsonColumns(batch, columns, this.#how)
  }

  /** The first value of a batch that COPY would alter or misread. */
  check(batch: CsvBatch | RowsBatch, sent: SentBatch, columns: readonly TableColumn[]): BadValue | null {
    const checker = this.#checkerFor(batch.columns, columns, sent.shape)
    if (checker === null) return null
    if (batch.form === 'csv') return checker.checkCsv({ bytes: sent.bytes, quoted: batch.quoted, csv: batch.csv })
    for (const [i, row] of batch.rows.entries()) {
      const bad = checker.checkRow(row, i)
      if (bad !== null) return bad
    }
    return null
  }

  #checkerFor(names: readonly string[], columns: readonly TableColumn[], shape: CsvShape): ValueChecker | null {
    const key = JSON.stringify([names, shape])
    let checker = this.#checkers.get(key)
    if (checker === undefined) {
      checker = createValueChecker(columns, { shape, timeZone: this.#timeZone })
      this.#checkers.set(key, checker)
    }
    return checker
  }
}
