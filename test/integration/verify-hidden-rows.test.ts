import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { verify, type EventListener } from '../../src/index.ts'
import { type LoadPlace, makeLoadPlace } from '../support/load-place.ts'

let place: LoadPlace
beforeAll(async () => {
  place = await makeLoadPlace('postgres15', 'verify_hidden')
})
afterAll(() => place.close())

it('verify tells why rows that policies hide seem to be missing', async () => {
  const role = `verify_${process.pid}`
  const file = place.file('two.csv', 'id,name\n1,Ada\n2,Grace\n')
  await place.table('id int, name text')
  await place.sql(`INSERT INTO t VALUES (1, 'Ada'), (2, 'Grace'); CREATE ROLE ${role} LOGIN PASSWORD 'pw'; GRANT SELECT ON t TO ${role};
    ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY one ON t USING (id = 1)`)
  try {
    const own = `${place.db.url}?table=t`
    const limited = own.replace(/\/\/[^@]*@/, `//${role}:pw@`)
    const compared = async (source: string, sink: string): Promise<{ same: boolean; warnings: string[] }> => {
      const warnings: string[] = []
      const onEvent: EventListener = (event) => {
        if (event.kind === 'warning') warnings.push(event.message)
      }
      const { same } = await verify(source, sink, { options: {}, env: {}, stateDir: join(place.folder, 's'), onEvent })
      return { same, warnings }
    }
    const warning = `row-level security of public.t applies to role ${role}: only rows that its policies show are read`
    expect(await compared(file, limited)).toEqual({ same: false, warnings: [warning] })
    expect(await compared(limited, file)).toEqual({ same: false, warnings: [warning] })
    expect(await compared(file, own)).toEqual({ same: true, warnings: [] })
  } finally {
    await place.sql(`DROP OWNED BY ${role}; DROP ROLE ${role}`)
  }
})
