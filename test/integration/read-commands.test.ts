import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type CopyOptions, verify, type VerifyResult } from '../../src/index.ts'
import { type LoadPlace, makeLoadPlace } from '../support/load-place.ts'
import { freshBucket, s3Do, sharedServices } from '../support/services.ts'

const COLUMNS = 'id int, name text, price numeric(10,2)'
const FILE = 'id,name,price\n1,Ada,1.50\n2,"",2\n3,,-0.25\n4,"x\ny",\n'
const TABLE = `INSERT INTO t VALUES (1, 'Ada', 1.5), (2, '', 2), (3, NULL, -0.25), (4, E'x\\ny', NULL)`
/** Every table, index, type and schema that the database has, ours or not; those of the session itself have gone with it. */
const CATALOG = `SELECT (SELECT count(*) FROM pg_class WHERE relpersistence <> 't'), (SELECT count(*) FROM pg_class WHERE relpersistence = 't'
  AND relname LIKE 'sluice%'), (SELECT string_agg(nspname, ',' ORDER BY 1) FROM pg_namespace WHERE nspname NOT LIKE 'pg_%temp_%')`

let place: LoadPlace
let bucket = ''
const s3 = () => sharedServices().versitygw
const put = (key: string, body: string | Uint8Array) => s3Do(s3(), { method: 'PUT', path: `/${bucket}/${key}`, body })
const table = () => `${place.db.url}?table=t`

beforeAll(async () => {
  place = await makeLoadPlace('postgres15', 'read_commands')
  bucket = await freshBucket(s3(), 'read')
})
afterAll(() => place.close())

function check(source: string, sink: string, o: { limit?: number; options?: CopyOptions } = {}): Promise<VerifyResult> {
  const { limit, options = {} } = o
  return verify(source, sink, { options, env: s3().env, stateDir: join(place.folder, 'state'), limit })
}

describe('verify of a file and a table', () => {
  let file = ''
  beforeAll(() => {
    file = place.file('base.csv', FILE)
  })

  /** The file against a table that holds its rows, changed by a statement. */
  async function changed(sql: string, o: { limit?: number; options?: CopyOptions } = {}): Promise<VerifyResult> {
    await place.table(COLUMNS)
    await place.sql(`${TABLE}; ${sql}`)
    return check(file, table(), o)
  }

  it('says that both hold the same, from a file and from S3', async () => {
    const local = await changed('')
    expect(local).toMatchObject({ same: true, differences: [], source: { rows: 4 }, sink: { rows: 4 } })
    expect(local.source.hash).toBe(local.sink.hash)
    await put('v/base.csv', FILE)
    const remote = await check(`s3://${bucket}/v/base.csv`, table())
    expect(remote).toMatchObject({ same: true, source: { hash: local.source.hash, rows: 4 } })
  })

  it('does not mind the order of rows', async () => {
    await place.table(COLUMNS)
    await place.sql(
      `${TABLE}; CREATE TABLE u AS SELECT * FROM t ORDER BY id DESC; DROP TABLE t; ALTER TABLE u RENAME TO t`,
    )
    expect(await check(file, table())).toMatchObject({ same: true, differences: [] })
  })

  it.each([
    ['one value differs', `UPDATE t SET price = 1.51 WHERE id = 1`, 4, ['missing (1,Ada,1.50)', 'extra (1,Ada,1.51)']],
    ['a row is missing', `DELETE FROM t WHERE id = 1`, 3, ['missing (1,Ada,1.50)']],
    ['a row is too many', `INSERT INTO t VALUES (5, 'new', 0)`, 5, ['extra (5,new,0.00)']],
    ['a row is there twice', `INSERT INTO t VALUES (1, 'Ada', 1.5)`, 5, ['extra (1,Ada,1.50)']],
    ['NULL became ""', `UPDATE t SET name = '' WHERE id = 3`, 4, ['missing (3,,-0.25)', 'extra (3,"",-0.25)']],
    ['"" became NULL', `UPDATE t SET name = NULL WHERE id = 2`, 4, ['missing (2,"",2.00)', 'extra (2,,2.00)']],
    [
      'two values are swapped',
      `UPDATE t SET id = 3 - id WHERE id < 3`,
      4,
      ['missing (1,Ada,1.50)', 'missing (2,"",2.00)', 'extra (1,"",2.00)', 'extra (2,Ada,1.50)'],
    ],
  ])('sees that %s', async (_, sql, rows, differences) => {
    const result = await changed(sql)
    expect(result).toMatchObject({ same: false, source: { rows: 4 }, sink: { rows } })
    expect(result.differences.map(({ kind, text }) => `${kind} ${text}`).toSorted()).toEqual(differences.toSorted())
    expect(result.source.hash).not.toBe(result.sink.hash)
  })
})
