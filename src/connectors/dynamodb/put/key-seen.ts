import { SluiceError } from '../../../core/errors.ts'

/** Keys that are remembered at most: 2^25 places of 8 bytes, 256 MiB, two thirds full. */
const MOST_KEYS = 22_000_000
const FIRST_PLACES = 1 << 16

/**
 * Whether a key came before, for `--dedupe error`: 64 bits of each key are remembered, 8 to 16 bytes a key, so that of 22 million different keys two are
 * taken for the same with a chance of 1 in 76,000. More keys than that are refused rather than forgotten.
 */
export class SeenKeys {
  #places = new Uint32Array(FIRST_PLACES * 2)
  #mask = FIRST_PLACES - 1
  #count = 0
  readonly #most: number

  /** `sharers`: how many of these share the bound; each has as many of the keys. */
  constructor(sharers = 1) {
    this.#most = Math.ceil(MOST_KEYS / sharers)
  }

  get count(): number {
    return this.#count
  }

  /** Notes a key. @returns whether it was there already. @throws SLUICE_USAGE where there are too many */
  add(key: string): boolean {
    const { high, low } = hash64(key)
    let at = (low & this.#mask) * 2
    for (;;) {
      const [h, l] = [this.#places[at], this.#places[at + 1]]
      if (h === 0 && l === 0) break
      if (h === high && l === low) return true
      at = (at + 2) & (this.#mask * 2 + 1)
    }
    this.#places[at] = high
    this.#places[at + 1] = low
    this.#count += 1
    if (this.#count > this.#most)
      throw new SluiceError('SLUICE_USAGE', `--dedupe error remembers ${MOST_KEYS} keys, and there are more`, {
        hint: 'load with --dedupe last, or in several files',
      })
    if (this.#count * 3 > (this.#mask + 1) * 2) this.#grow()
    return false
  }

  #grow(): void {
    const old = this.#places
    this.#places = new Uint32Array(old.length * 2)
    this.#mask = old.length - 1
    for (let from = 0; from < old.length; from += 2) {
      const [high = 0, low = 0] = [old[from], old[from + 1]]
      if (high === 0 && low === 0) continue
      let at = (low & this.#mask) * 2
      while (this.#places[at] !== 0 || this.#places[at + 1] !== 0) at = (at + 2) & (this.#mask * 2 + 1)
      this.#places[at] = high
      this.#places[at + 1] = low
    }
  }
}

/** Two independent multiplicative hashes of the UTF-16 units, mixed as in MurmurHash3's finaliser; never both 0. */
function hash64(key: string): { high: number; low: number } {
  let a = 0x9e3779b9 ^ key.length
  let b = 0x85ebca6b
  for (let i = 0; i < key.length; i += 1) {
    const unit = key.charCodeAt(i)
    a = Math.imul(a ^ unit, 0x01000193)
    a ^= a >>> 15
    b = Math.imul((b << 13) | (b >>> 19), 5) + Math.imul(unit + 1, 0xcc9e2d51)
  }
  return { high: mix(a ^ (b >>> 7)) >>> 0 || 1, low: mix(b + Math.imul(a, 0x27d4eb2f)) >>> 0 }
}

function mix(hash: number): number {
  let h = hash
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return h ^ (h >>> 16)
}
