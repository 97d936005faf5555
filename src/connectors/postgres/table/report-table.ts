import type { EndpointRequest, TableReport } from '../../connector.ts'
import { describeTable } from './table.ts'
import { neutralTypeOf } from './type-map.ts'
import { withTable } from './with-table.ts'

/** What `table` and `inspect` say of a table. @throws SLUICE_NOT_FOUND, SLUICE_USAGE */
export async function reportTable(request: EndpointRequest): Promise<TableReport> {
  return withTable(request, async (connection, reference) => {
    const table = await describeTable(connection, reference)
    const [size] = await connection.query<{ rows: string; bytes: string }>(
      'SELECT greatest(c.reltuples, 0)::bigint::text AS rows, pg_catalog.pg_total_relation_size(c.oid)::text AS bytes FROM pg_catalog.pg_class c WHERE c.oid = $1',
      [table.oid],
    )
    const columns = table.columns.map((column) => ({
      name: column.name,
      type: neutralTypeOf(column.baseTypeOid, column.element !== null),
      nativeType: column.type,
      nullable: column.nullable,
    }))
    return {
      schema: { columns, named: true },
      name: { schema: table.schema, name: table.name },
      rows: Number(size?.rows ?? 0),
      bytes: Number(size?.bytes ?? 0),
      table: {
        schema: table.schema,
        name: table.name,
        kind: table.kind,
        primaryKey: table.primaryKey === null ? null : [...table.primaryKey],
        uniqueKeys: table.uniqueKeys.map((key) => [...key]),
        foreignKeys: table.foreignKeys.map((key) => ({
          name: key.name,
          columns: [...key.columns],
          references: key.references,
        })),
        triggers: [...table.triggers],
        generated: table.columns.filter((column) => column.generated).map((column) => column.name),
        rowsAreEstimated: true,
      },
    }
  })
}
