// The file of the first experiment: 10,000,000 rows are 208,888,910 bytes. Seeded: the same file each time.
import { closeSync, existsSync, openSync, renameSync, statSync, writeSync } from 'node:fs'

const LETTERS = 'abcdefghijklmnopqrstuvwxyz'

/** mulberry32. */
function random(seed) {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}

/** @param {{ rows: number, path: string, wide?: boolean }} o wide: a numeric(10,2) and a timestamp column more */
export function makePeople({ rows, path, wide = false }) {
  if (existsSync(path)) return statSync(path).size
  const next = random(7)
  const names = Array.from({ length: 65_536 }, () =>
    Array.from({ length: 8 }, () => LETTERS[Math.floor(next() * 26)]).join(''),
  )
  const ages = Array.from({ length: 4096 }, () => 10 + Math.floor(next() * 90))
  const file = openSync(`${path}.tmp`, 'w')
  let text = wide ? 'id,name,age,amount,seen\r\n' : 'id,name,age\r\n'
  for (let i = 1; i <= rows; i += 1) {
    const more = wide
      ? `,${i % 99_991}.${String(i % 100).padStart(2, '0')},2024-0${1 + (i % 9)}-1${i % 10} 0${i % 10}:1${i % 6}:2${i % 10}.${100_000 + (i % 900_000)}`
      : ''
    text += `${i},${names[Math.imul(i, 40_503) & 65_535]},${ages[(Math.imul(i, 2_654_435_761 | 0) >>> 8) & 4095]}${more}\r\n`
    if (text.length > 1 << 20 || i === rows) {
      writeSync(file, text)
      text = ''
    }
  }
  closeSync(file)
  renameSync(`${path}.tmp`, path)
  return statSync(path).size
}
