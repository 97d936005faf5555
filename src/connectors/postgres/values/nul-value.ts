import type { RowsBatch } from '../../../core/batch.ts'
import { SluiceError } from '../../../core/errors.ts'

/**
 * PostgreSQL's text holds no U+0000 (documentation, "Character Types"): refuses the first value of a batch that has one.
 *
 * @throws SLUICE_NUL with row and column
 */
export function refuseNul({ rows, places, columns }: RowsBatch): void {
  for (const [i, row] of rows.entries()) {
    const at = row.findIndex((value) => typeof value === 'string' && value.includes('\0'))
    if (at < 0) continue
    throw new SluiceError('SLUICE_NUL', 'a NUL character, which no text of PostgreSQL can hold', {
      where: { ...places[i], column: columns[at] },
      hint: '--on-nul strip drops such characters where a file is read, --replace column=/\\u0000// everywhere',
    })
  }
}
