// Postcodes in the shape of ukpostcodes.csv (id,postcode,latitude,longitude), sorted, each once. Seeded: the same file each time.
import { closeSync, openSync, statSync, writeSync } from 'node:fs'

const LETTERS = 'ABDEFGHJLNPQRSTUWXYZ'

/** @param {{ rows: number, path: string }} o */
export function makePostcodes({ rows, path }) {
  const file = openSync(path, 'w')
  let text = 'id,postcode,latitude,longitude\n'
  for (let i = 1; i <= rows; i += 1) {
    const [unit, sector] = [i % 400, Math.floor(i / 400)]
    const [district, area] = [sector % 290, Math.floor(sector / 290)]
    const code = `${LETTERS[Math.floor(area / 20) % 20]}${LETTERS[area % 20]}${1 + Math.floor(district / 10)} ${district % 10}${LETTERS[Math.floor(unit / 20)]}${LETTERS[unit % 20]}`
    const latitude = 50 + (Math.imul(i, 2_654_435_761 | 0) >>> 0) / 429_496_730
    const longitude = -8 + (Math.imul(i, 40_503_000) >>> 0) / 429_496_730
    text += `${i},${code},${latitude.toFixed(9).replace(/0$/, '1')},${longitude.toFixed(9).replace(/0$/, '1')}\n`
    if (text.length > 1 << 20 || i === rows) {
      writeSync(file, text)
      text = ''
    }
  }
  closeSync(file)
  return statSync(path).size
}
