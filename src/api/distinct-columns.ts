import { SluiceError } from '../core/errors.ts'
import type { Column } from '../core/schema.ts'
import { nameTwice } from '../engine/mapping.ts'

/** @throws SLUICE_USAGE where two columns have one name: only CSV can have that */
export function requireDistinct(columns: readonly Column[]): void {
  const twice = nameTwice(columns.map(({ name }) => name))
  if (twice === undefined) return
  throw new SluiceError('SLUICE_USAGE', `two columns have the name ${JSON.stringify(twice)}: only CSV can have that`, {
    where: { column: twice },
    hint: 'name one of them otherwise, in a query with AS',
  })
}
