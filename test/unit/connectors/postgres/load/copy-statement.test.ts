import { describe, expect, it } from 'vitest'
import { copyStatement, readsAsText } from '../../../../../src/connectors/postgres/load/copy-statement.ts'

const SHAPE = { delimiter: ',', quote: '"', escape: '"' }
const bytes = (text: string): Buffer => Buffer.from(text)

describe('readsAsText', () => {
  it('is so without quotes, backslashes and letters between fields', () => {
    expect(readsAsText(bytes('1,a,\n'), SHAPE, true)).toBe(true)
    expect(readsAsText(bytes('1,"a"\n'), SHAPE, true)).toBe(false)
    expect(readsAsText(bytes("1,'a'\n"), { ...SHAPE, quote: "'" }, true)).toBe(false)
    expect(readsAsText(bytes('1,a\\n\n'), SHAPE, false)).toBe(false)
    expect(readsAsText(bytes('1xa\n'), { ...SHAPE, delimiter: 'x' }, false)).toBe(false)
    expect(readsAsText(bytes('1\ta\n'), { ...SHAPE, delimiter: '\t' }, false)).toBe(true)
  })
})

describe('copyStatement', () => {
  it('tells no quote to the text format', () => {
    expect(copyStatement({ table: '"t"', columns: ['a"b'] }, SHAPE, 'text')).toBe(
      `COPY "t" ("a""b") FROM STDIN WITH (FORMAT text, DELIMITER ',', NULL '', ENCODING 'UTF8')`,
    )
    expect(copyStatement({ table: '"t"', columns: [] }, SHAPE, 'csv')).toBe(
      `COPY "t" FROM STDIN WITH (FORMAT csv, DELIMITER ',', QUOTE '"', ESCAPE '"', NULL '', ENCODING 'UTF8')`,
    )
  })
})
