const TWO_32 = 4_294_967_296
/** Digits that a double counts exactly in any case. */
const EXACT_DIGITS = 15
const POWERS = Array.from({ length: EXACT_DIGITS + 1 }, (_, i) => 10 ** i)

/** numeric.c: sign of what numeric_send sends. */
const SIGN = { positive: 0, negative: 0x4000, infinity: 0xd000, minusInfinity: 0xf000 } as const
/** Digits of base 10,000 begin behind their count, the weight of the first, the sign and the scale shown, two bytes each. */
const HEAD_BYTES = 8
/** Characters of a number that an error shows. */
const MOST_SHOWN = 60

/**
 * Reads PostgreSQL's binary numerics as 128-bit integers of units of 10^-scale, without BigInt: up to 15 digits in a double, more in four limbs of 32 bits.
 */
export class DecimalReader {
  /** The integer last read, in two's complement, lowest 32 bits first. */
  w0 = 0
  w1 = 0
  w2 = 0
  w3 = 0
  readonly #precision: number
  readonly #scale: number
  /** 10^precision, lowest limb first. */
  readonly #bound: readonly [number, number, number, number]

  constructor({ precision, scale }: { readonly precision: number; readonly scale: number }) {
    this.#precision = precision
    this.#scale = scale
    const bound = 10n ** BigInt(precision)
    const limb = (i: number): number => Number((bound >> BigInt(32 * i)) & 0xffffffffn)
    this.#bound = [limb(0), limb(1), limb(2), limb(3)]
  }

  /** Whether the value at this offset is a number that fits exactly; then it is in the words. The size is checked by the caller. */
  read(view: DataView, at: number): boolean {
    let count = view.getUint16(at)
    const sign = view.getUint16(at + 4)
    if (sign !== SIGN.positive && sign !== SIGN.negative) return false
    const first = at + HEAD_BYTES
    // The digits together, as an integer, are to be multiplied by 10^places.
    let places = 4 * (view.getInt16(at + 2) - count + 1) + this.#scale
    while (count > 0 && places <= -4) {
      if (view.getUint16(first + 2 * (count - 1)) !== 0) return false
      count -= 1
      places += 4
    }
    if (count === 0) return this.#set(0)
    if (4 * count + places > EXACT_DIGITS) return this.#readLong(view, { first, count, places, sign })
    let value = 0
    const whole = places < 0 ? count - 1 : count
    for (let i = 0; i < whole; i += 1) value = value * 10_000 + view.getUint16(first + 2 * i)
    if (places >= 0) value *= POWERS[places] ?? NaN
    else {
      const last = view.getUint16(first + 2 * whole)
      const unit = POWERS[-places] ?? NaN
      if (last % unit !== 0) return false
      value = value * (POWERS[4 + places] ?? NaN) + last / unit
    }
    if (this.#precision <= EXACT_DIGITS && value >= (POWERS[this.#precision] ?? NaN)) return false
    return this.#set(sign === SIGN.negative ? -value : value)
  }

  /** Of a whole number within 53 bits. */
  #set(value: number): true {
    this.w0 = value | 0
    this.w1 = Math.floor(value / TWO_32) | 0
    this.w2 = value < 0 ? -1 : 0
    this.w3 = this.w2
    return true
  }

  #readLong(view: DataView, o: { first: number; count: number; places: number; sign: number }): boolean {
    this.w0 = this.w1 = this.w2 = this.w3 = 0
    const whole = o.places < 0 ? o.count - 1 : o.count
    for (let i = 0; i < whole; i += 1) if (!this.#multiplyAdd(10_000, view.getUint16(o.first + 2 * i))) return false
    if (o.places < 0) {
      const last = view.getUint16(o.first + 2 * whole)
      const unit = POWERS[-o.places] ?? NaN
      if (last % unit !== 0 || !this.#multiplyAdd(POWERS[4 + o.places] ?? NaN, last / unit)) return false
    }
    let places = Math.max(o.places, 0)
    for (; places >= 4; places -= 4) if (!this.#multiplyAdd(10_000, 0)) return false
    if (!this.#multiplyAdd(POWERS[places] ?? NaN, 0) || !this.#isWithin()) return false
    if (o.sign === SIGN.negative) this.#negate()
    return true
  }

  /** The words, unsigned, times at most 10,000, plus less than that: each step stays within 53 bits. False where 128 are not enough. */
  #multiplyAdd(factor: number, addend: number): boolean {
    const t0 = (this.w0 >>> 0) * factor + addend
    const t1 = (this.w1 >>> 0) * factor + Math.floor(t0 / TWO_32)
    const t2 = (this.w2 >>> 0) * factor + Math.floor(t1 / TWO_32)
    const t3 = (this.w3 >>> 0) * factor + Math.floor(t2 / TWO_32)
    this.w0 = t0 | 0
    this.w1 = t1 | 0
    this.w2 = t2 | 0
    this.w3 = t3 | 0
    return t3 < TWO_32
  }

  #isWithin(): boolean {
    const [b0, b1, b2, b3] = this.#bound
    const [w0, w1, w2, w3] = [this.w0 >>> 0, this.w1 >>> 0, this.w2 >>> 0, this.w3 >>> 0]
    if (w3 !== b3) return w3 < b3
    if (w2 !== b2) return w2 < b2
    if (w1 !== b1) return w1 < b1
    return w0 < b0
  }

  #negate(): void {
    const t0 = (~this.w0 >>> 0) + 1
    const t1 = (~this.w1 >>> 0) + Math.floor(t0 / TWO_32)
    const t2 = (~this.w2 >>> 0) + Math.floor(t1 / TWO_32)
    this.w0 = t0 | 0
    this.w1 = t1 | 0
    this.w2 = t2 | 0
    this.w3 = (~this.w3 + Math.floor(t2 / TWO_32)) | 0
  }
}

/** Bytes that the numeric at this offset takes. */
export function numericBytes(view: DataView, at: number): number {
  return HEAD_BYTES + 2 * view.getUint16(at)
}

/** The numeric at this offset as people write it, at most 60 characters of it. */
export function numericText(view: DataView, at: number): string {
  const [count, weight, sign, shown] = [0, 2, 4, 6].map((offset) => view.getUint16(at + offset)) as [
    number,
    number,
    number,
    number,
  ]
  if (sign === SIGN.infinity) return 'Infinity'
  if (sign === SIGN.minusInfinity) return '-Infinity'
  if (sign !== SIGN.positive && sign !== SIGN.negative) return 'NaN'
  const signed = (weight << 16) >> 16
  const group = (place: number): string => {
    const index = signed - place
    return String(index >= 0 && index < count ? view.getUint16(at + HEAD_BYTES + 2 * index) : 0).padStart(4, '0')
  }
  // The first groups of each part are enough for what is shown.
  const most = MOST_SHOWN / 4 + 1
  const before = Array.from({ length: Math.min(Math.max(signed + 1, 1), most) }, (_, i) =>
    group(Math.max(signed, 0) - i),
  )
  const behind = Array.from({ length: Math.min(Math.ceil(shown / 4), most) }, (_, i) => group(-1 - i))
  const fraction = behind.join('').slice(0, shown)
  const whole = before.join('').replace(/^0+(?=\d)/, '')
  const text = `${sign === SIGN.negative ? '-' : ''}${whole}${fraction === '' || signed >= most ? '' : `.${fraction}`}`
  return text.length > MOST_SHOWN || signed >= most ? `${text.slice(0, MOST_SHOWN)}…` : text
}
