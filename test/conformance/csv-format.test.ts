import type { Value } from '../../src/core/batch.ts'
import { createCsvReader } from '../../src/formats/csv/csv-reader.ts'
import { describeFormat } from './format-suite.ts'
import type { FormatSample } from './format-suite.ts'

const maxRowBytes = 1024 * 1024

function sample(name: string, text: string, rows: readonly (readonly Value[])[]): FormatSample {
  return { name, bytes: Buffer.from(text), columns: ['id', 'name', 'note'], rows }
}

const many = Array.from({ length: 30_000 }, (_, i) => [`${i}`, `name ${i % 977}`, i % 7 === 0 ? null : `é${i}`])
const quoted = many.map((row, i) =>
  row.map((value, j) => (value === null ? null : j === 1 ? `${value}, "${i}"\r\nand more` : value)),
)

const samples: readonly FormatSample[] = [
  sample('plain', 'id,name,note\n1,a,\n2,b,c\n', [
    ['1', 'a', null],
    ['2', 'b', 'c'],
  ]),
  sample('no last line end', 'id,name,note\r\n1,"a ""b""",""\r\n\r\n2,"x\r\ny",é', [
    ['1', 'a "b"', ''],
    ['2', 'x\r\ny', 'é'],
  ]),
  sample('mixed line ends', 'id,name,note\n1,a,b\r\n2,c,d\n3,e\rf,g\n', [
    ['1', 'a', 'b'],
    ['2', 'c', 'd'],
    ['3', 'e\rf', 'g'],
  ]),
  sample('CR only', 'id,name,note\r1,a,"b\nc"\r\r2,c,d', [
    ['1', 'a', 'b\nc'],
    ['2', 'c', 'd'],
  ]),
  sample('byte-order mark', '\ufeffid,name,note\n1,漢,🙂\n', [['1', '漢', '🙂']]),
  sample('header only', 'id,name,note\n', []),
  sample('many', ['id,name,note', ...many.map((row) => row.join(','))].join('\n'), many),
  sample('many, quoted', ['id,name,note', ...quoted.map((row) => row.map(quote).join(','))].join('\r\n'), quoted),
]

function quote(value: string | null): string {
  return value === null ? '' : `"${value.replaceAll('"', '""')}"`
}

describeFormat('csv', { open: () => createCsvReader({ maxRowBytes }), samples, named: true })

describeFormat('csv in UTF-16', {
  open: () => createCsvReader({ maxRowBytes }),
  samples: samples.map((one) => ({
    ...one,
    bytes: Buffer.from(`\ufeff${Buffer.from(one.bytes).toString('utf8').replace('\ufeff', '')}`, 'utf16le'),
  })),
  named: true,
})

describeFormat('tsv', {
  open: () => createCsvReader({ maxRowBytes, delimiter: '\t' }),
  samples: [
    {
      name: 'tabs',
      bytes: Buffer.from('id\tname\n1\ta,b\n2\t\n'),
      columns: ['id', 'name'],
      rows: [
        ['1', 'a,b'],
        ['2', null],
      ],
    },
  ],
  named: true,
})
