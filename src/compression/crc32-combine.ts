/** The polynomial of CRC-32 with its bits turned round (RFC 1952, section 8): bit 31 is the coefficient of x^0. */
const POLYNOMIAL = 0xedb88320
/** x^0. */
const ONE = 0x80000000
/** x^8: what one more byte multiplies by. */
const BYTE = 0x00800000

/** The CRC-32 of two runs of bytes one after the other, of their own CRC-32s and the length of the second in bytes: a·x^(8·length) + b, modulo the polynomial. */
export function combineCrc32(a: number, b: number, bytes: number): number {
  return (multiply(a, power(BYTE, bytes)) ^ b) >>> 0
}

/** The product modulo the polynomial. */
function multiply(a: number, b: number): number {
  let product = 0
  let shifted = b
  for (let bit = ONE; bit !== 0; bit >>>= 1) {
    if ((a & bit) !== 0) product ^= shifted
    shifted = (shifted & 1) === 1 ? (shifted >>> 1) ^ POLYNOMIAL : shifted >>> 1
  }
  return product >>> 0
}

/** By squaring, as lengths may have 53 bits. */
function power(base: number, exponent: number): number {
  let result = ONE
  let square = base
  for (let left = exponent; left > 0; left = Math.floor(left / 2)) {
    if (left % 2 === 1) result = multiply(result, square)
    square = multiply(square, square)
  }
  return result
}
