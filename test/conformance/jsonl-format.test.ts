import type { Value } from '../../src/core/batch.ts'
import { createJsonLinesReader } from '../../src/formats/jsonl/jsonl-reader.ts'
import { describeFormat, type FormatSample } from './format-suite.ts'

const open = () => createJsonLinesReader({ maxRowBytes: 1024 * 1024 })
const columns = ['id', 'name', 'note']
const number = (text: string): Value => ({ kind: 'number', text })
const json = (text: string): Value => ({ kind: 'json', text })

function sample(name: string, text: string, rows: readonly (readonly Value[])[]): FormatSample {
  return { name, bytes: Buffer.from(text), columns, rows }
}

const small: readonly (readonly Value[])[] = [
  [number('1'), 'a', null],
  [number('-0.10e+2'), 'é "x"\n', true],
  [number('12345678901234567890.5'), '🙂', json('{"a": [1, "]}"]}')],
]
const smallLines = [
  '{"id":1,"name":"a","note":null}',
  '{ "name" : "é \\"x\\"\\n" , "id" : -0.10e+2 , "note" : true }',
  '{"id":12345678901234567890.5,"name":"\\ud83d\\ude42","note":{"a": [1, "]}"]}}',
]
const many = Array.from({ length: 12_000 }, (_, i): readonly Value[] => [
  number(`${i}`),
  `name ${i % 977}`,
  i % 7 === 0 ? undefined : `é${i}`,
])
const manyLines = many.map(([, name, note], i) => JSON.stringify({ id: i, name, note }))

const samples: readonly FormatSample[] = [
  sample('lines', `${smallLines.join('\n')}\n`, small),
  sample('CRLF, blank lines, no last line end', `\r\n${smallLines.join('\r\n \r\n')}`, small),
  sample('byte-order mark', `\ufeff${smallLines.join('\n')}\n`, small),
  sample('array', `[${smallLines.join(',')}]`, small),
  sample(
    'array over lines',
    ` \n[\n  ${smallLines.map((line) => line.replaceAll(' , ', '\n , ')).join(',\n  ')}\n]\n`,
    small,
  ),
  sample('many', manyLines.join('\n'), many),
  sample('many in an array', `[\n${manyLines.join(',\n')}\n]`, many),
]

describeFormat('jsonl', { open, samples, named: true })

describeFormat('jsonl in UTF-16', {
  open,
  samples: samples.map((one) => ({
    ...one,
    bytes: Buffer.from(`\ufeff${Buffer.from(one.bytes).toString('utf8').replace('\ufeff', '')}`, 'utf16le'),
  })),
  named: true,
})
