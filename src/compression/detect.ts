import type { CompressionName } from '../core/ports.ts'

/** Bytes of the head that `detectCompression` looks at. */
export const DETECT_BYTES = 10

const ENDINGS: readonly (readonly [string, CompressionName])[] = [
  ['.gz', 'gzip'],
  ['.gzip', 'gzip'],
  ['.zst', 'zstd'],
  ['.zstd', 'zstd'],
  ['.bz2', 'bzip2'],
  ['.zip', 'zip'],
]

/**
 * The compression that the first bytes of a file tell; `none` where they tell nothing. Ten bytes are enough.
 * Magic numbers: RFC 1952 (gzip), RFC 8878 (zstd frames and skippable frames), APPNOTE 4.3 (zip; PK 05 06 is an empty one), bzip2's `BZh1` … `BZh9` before a block or the end mark.
 */
export function detectCompression(head: Uint8Array): CompressionName {
  const [a, b, c, d] = head
  if (a === 0x1f && b === 0x8b) return 'gzip'
  if (b === 0xb5 && c === 0x2f && d === 0xfd && a === 0x28) return 'zstd'
  if (a !== undefined && (a & 0xf0) === 0x50 && b === 0x2a && c === 0x4d && d === 0x18) return 'zstd'
  if (a === 0x50 && b === 0x4b && ((c === 3 && d === 4) || (c === 5 && d === 6))) return 'zip'
  return startsBzip2(head) ? 'bzip2' : 'none'
}

function startsBzip2(head: Uint8Array): boolean {
  if (head[0] !== 0x42 || head[1] !== 0x5a || head[2] !== 0x68) return false
  const level = head[3] ?? 0
  if (level < 0x31 || level > 0x39) return false
  // Text may begin with "BZh1": what follows must be a block's magic (pi) or the stream's end (sqrt pi).
  const mark = Buffer.from(head.subarray(4, 10)).toString('hex')
  return mark === '314159265359' || mark === '177245385090'
}

/** Whether the bytes are a proper beginning of the magic number of `name`, so that a file that ends here was cut. */
export function isCutMagic(name: 'gzip' | 'zstd', head: Uint8Array): boolean {
  if (name === 'gzip') return head.byteLength === 0 || (head.byteLength === 1 && head[0] === 0x1f)
  if (head.byteLength >= 4) return false
  const frame = [0x28, 0xb5, 0x2f]
  const skippable = [0x50, 0x2a, 0x4d]
  return (
    head.every((byte, index) => byte === frame[index]) ||
    head.every((byte, index) => (index === 0 ? byte & 0xf0 : byte) === skippable[index])
  )
}

/** The compression that a file's name tells, or null. */
export function compressionOfName(name: string): CompressionName | null {
  const lower = name.toLowerCase()
  return ENDINGS.find(([ending]) => lower.endsWith(ending))?.[1] ?? null
}

/** `a.csv.gz` → `a.csv`: the name by which the format is told. A name without such an ending comes back as it is. */
export function stripCompressionExtension(name: string): string {
  const lower = name.toLowerCase()
  const found = ENDINGS.find(([ending]) => lower.endsWith(ending))
  return found === undefined ? name : name.slice(0, -found[0].length)
}
