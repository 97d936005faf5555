// GB/s of the CSV scanner over 64 MiB in memory: `npx tsc -p tsconfig.build.json && node bench/scanner.bench.mjs [rounds]`.
// Each kind of data is made from a row number, so that the number of rows is known and checked.
const { countByte, lastRecordEnd } = await import('../dist/formats/csv/scan.js')
const { screen } = await import('../dist/formats/csv/screen.js')

const TOTAL_BYTES = 64 * 1024 * 1024
const CHUNK_BYTES = 256 * 1024
const QUOTE = 34
const rounds = Number(process.argv[2] ?? 7)

const kinds = {
  'no quotes': (i) => `${i},ormoxllw,${i % 90}\r\n`,
  'rare quotes (1 row in 200)': (i) => (i % 200 ? `${i},ormoxllw,${i % 90}\r\n` : `${i},"ormo, llw",${i % 90}\r\n`),
  'every field quoted': (i) => `"${i}","na""me ${i % 977}","${i % 90}"\r\n`,
  'quoted line ends': (i) => `${i},"line one\r\nline two, ${i % 977}",${i % 90}\r\n`,
}

function make(row) {
  const bytes = Buffer.allocUnsafeSlow(TOTAL_BYTES)
  let length = 0
  let rows = 0
  for (; length < TOTAL_BYTES - 128; rows += 1) length += bytes.latin1Write(row(rows), length)
  return { bytes: bytes.subarray(0, length), rows }
}

/** Cuts the way the reader does: each block begins where a record does. */
function boundaries(bytes) {
  const ends = []
  for (let at = 0; at < bytes.length;) {
    const cut = lastRecordEnd(bytes.subarray(at, at + CHUNK_BYTES), QUOTE)
    if (cut === 0) throw new Error(`no record ends in ${CHUNK_BYTES} bytes from ${at} on`)
    at += cut
    ends.push(at)
  }
  return ends
}

function screened(bytes, ends) {
  let rows = 0
  let at = 0
  for (const end of ends) {
    const block = bytes.subarray(at, end)
    const quoted = block.indexOf(QUOTE) >= 0
    const found = screen(block, {
      delimiter: 44,
      quote: quoted ? QUOTE : -1,
      doubled: true,
      crlf: true,
      blankLines: false,
    })
    if (!found.clean) throw new Error('the data is clean, and was not found so')
    rows += found.records
    at = end
  }
  return rows
}

function measure(name, bytes, work) {
  const rates = []
  for (let round = 0; round < rounds; round += 1) {
    const began = performance.now()
    work()
    rates.push(bytes.length / (performance.now() - began) / 1e6)
  }
  rates.sort((a, b) => a - b)
  const shown = [rates[0], rates[rates.length >> 1], rates.at(-1)].map((rate) => rate.toFixed(2).padStart(6)).join(' ')
  console.log(`${name.padEnd(76)} ${shown}`)
}

console.log(`GB/s, ${rounds} rounds${' '.repeat(65)}min median    max`)
for (const [name, row] of Object.entries(kinds)) {
  const { bytes, rows } = make(row)
  const ends = boundaries(bytes)
  if (ends.at(-1) !== bytes.length) throw new Error(`${name}: the last record was not found`)
  const counted = screened(bytes, ends)
  if (counted !== rows) throw new Error(`${name}: ${counted} rows counted, ${rows} made`)
  measure(`${name}: boundaries`, bytes, () => boundaries(bytes))
  measure(`${name}: rows counted, quotes and line ends checked`, bytes, () => screened(bytes, ends))
  measure(`${name}: line ends counted`, bytes, () => countByte(bytes, 10))
}
