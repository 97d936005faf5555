import { createWriteStream } from 'node:fs'
import { finished } from 'node:stream/promises'
import { once } from 'node:events'

const FIRST = [
  'Ada',
  'Grace',
  'Alan',
  'Edsger',
  'Barbara',
  'Donald',
  'Frances',
  'Ken',
  'Radia',
  'Tony',
  'Jean',
  'Niklaus',
]
const LAST = [
  'Lovelace',
  'Hopper',
  'Turing',
  'Dijkstra',
  'Liskov',
  'Knuth',
  'Allen',
  'Thompson',
  'Perlman',
  'Hoare',
  'Bartik',
  'Wirth',
]
const CITIES = ['London', 'New York', 'Zürich', 'København', 'São Paulo', '東京', 'Washington, D.C.', 'Dublin']
/** Rows put together before they are written: about 700 KiB. */
const BATCH_ROWS = 10_000

/**
 * A CSV file of people, the same for the same number of rows: quoted fields, letters of several bytes, NULLs, dates.
 * Resolves with its size in bytes.
 */
export async function writePeople(path: string, rows: number): Promise<number> {
  const file = createWriteStream(path)
  const random = randomFrom(7)
  const pick = (words: readonly string[]): string => words[Math.floor(random() * words.length)] ?? ''
  let text = 'id,name,city,joined,visits\n'
  for (let id = 1; id <= rows; id += 1) {
    const city = pick(CITIES)
    const joined = new Date(Date.UTC(2001, 0, 1) + Math.floor(random() * 9000) * 86_400_000).toISOString().slice(0, 10)
    const visits = random() < 0.02 ? '' : String(Math.floor(random() * 10_000))
    text += `${id},${pick(FIRST)} ${pick(LAST)},${city.includes(',') ? `"${city}"` : city},${joined},${visits}\n`
    if (id % BATCH_ROWS === 0 || id === rows) {
      if (!file.write(text)) await once(file, 'drain')
      text = ''
    }
  }
  file.end(text)
  await finished(file)
  return file.bytesWritten
}

/** A linear congruential generator (Numerical Recipes' constants): seeded, which Math.random is not. */
function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}
