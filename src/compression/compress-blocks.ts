import { availableParallelism } from 'node:os'
import { promisify } from 'node:util'
import { constants, crc32, deflateRaw } from 'node:zlib'
import { SluiceError } from '../core/errors.ts'
import type { CompressionName } from '../core/ports.ts'
import { compress } from './compress.ts'
import { combineCrc32 } from './crc32-combine.ts'
import { ENGINE_CHUNK_BYTES } from './run-engine.ts'

/** A run of bytes that was compressed by itself. */
export interface CompressedBlock {
  readonly bytes: Uint8Array
  /** CRC-32 of what was compressed; 0 for zstd, whose frames have a checksum of their own. */
  readonly crc: number
  /** Bytes before compression. */
  readonly length: number
}

/** Compresses runs of bytes side by side, which make one file in whatever order they are joined. */
export interface BlockCompressor {
  /** May run in parallel: some at once in libuv's threads, the others wait, as many as the caller begins. The bytes must rest meanwhile. */
  compress(bytes: Uint8Array): Promise<CompressedBlock>
  /** A file of blocks; one compressor may feed many. */
  openFile(): CompressedFile
}

/** Joins blocks to one file. */
export interface CompressedFile {
  begin(): Uint8Array
  add(block: CompressedBlock): Uint8Array
  /** What closes the file, also one without a block. */
  end(): Uint8Array
  /** Bytes of `end`. */
  readonly tailBytes: number
}

/** What a caller should give as one block, in bytes: large enough that what lies before a block is not missed, small enough to share work. */
export const BLOCK_BYTES = 1024 * 1024

const GZIP_LEVEL = 6
/** libuv has four threads, and file systems and name lookups want some of them. */
const MOST_AT_ONCE = 4

/**
 * Blocks of `gzip` or `zstd`. gzip comes as one member (many readers stop after the first): each block is deflated with an empty dictionary and ends at a byte
 * (RFC 1951, section 3.2.4: an empty stored block), their CRC-32s are combined. zstd comes as one frame a block (RFC 8878, section 3).
 *
 * @throws SLUICE_NOT_YET for other compressions; SLUICE_MISSING_PACKAGE where zstd is not to be had
 */
export async function compressBlocks(name: CompressionName): Promise<BlockCompressor> {
  if (name === 'gzip') return { compress: limited(deflateBlock), openFile: gzipFile }
  if (name !== 'zstd')
    throw new SluiceError('SLUICE_NOT_YET', `writing ${name} is not built`, {
      hint: '--sink-compression gzip or zstd',
    })
  const emptyFrame = await zstdFrame(new Uint8Array(0))
  return { compress: limited(zstdFrame), openFile: () => zstdFile(emptyFrame.bytes) }
}

const deflate = promisify(deflateRaw)

async function deflateBlock(bytes: Uint8Array): Promise<CompressedBlock> {
  const options = { level: GZIP_LEVEL, finishFlush: constants.Z_SYNC_FLUSH, chunkSize: ENGINE_CHUNK_BYTES }
  const deflated = bytes.byteLength === 0 ? bytes : await deflate(bytes, options)
  return { bytes: deflated, crc: crc32(bytes), length: bytes.byteLength }
}

async function zstdFrame(bytes: Uint8Array): Promise<CompressedBlock> {
  const engine = await compress('zstd')
  try {
    const frame = Buffer.concat([...(await engine.write(bytes)), ...(await engine.end())])
    return { bytes: frame, crc: 0, length: bytes.byteLength }
  } finally {
    engine.destroy()
  }
}

/** Magic, deflate, no flags, no time, unknown system (RFC 1952, section 2.3): the same input gives the same bytes. */
const GZIP_HEADER = new Uint8Array([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255])
/** A last block of fixed codes with nothing in it. */
const LAST_BLOCK = [3, 0]

function gzipFile(): CompressedFile {
  let crc = 0
  let length = 0
  return {
    begin: () => GZIP_HEADER.slice(),
    add: (block) => {
      crc = combineCrc32(crc, block.crc, block.length)
      length += block.length
      return block.bytes
    },
    end: () => {
      const tail = new Uint8Array(LAST_BLOCK.length + 8)
      tail.set(LAST_BLOCK)
      const view = new DataView(tail.buffer)
      view.setUint32(2, crc, true)
      view.setUint32(6, length % 2 ** 32, true)
      return tail
    },
    tailBytes: LAST_BLOCK.length + 8,
  }
}

function zstdFile(emptyFrame: Uint8Array): CompressedFile {
  let isEmpty = true
  return {
    begin: () => new Uint8Array(0),
    add: (block) => {
      if (block.length === 0) return new Uint8Array(0)
      isEmpty = false
      return block.bytes
    },
    end: () => (isEmpty ? emptyFrame : new Uint8Array(0)),
    tailBytes: 0,
  }
}

/** At most as many at once as there are processors. Waiting: what the callers began, each a block that they hold anyway. */
function limited(task: BlockCompressor['compress']): BlockCompressor['compress'] {
  let free = Math.min(MOST_AT_ONCE, availableParallelism())
  const waiting: (() => void)[] = []
  return async (bytes) => {
    if (free > 0) free -= 1
    else await new Promise<void>((resolve) => waiting.push(resolve))
    try {
      return await task(bytes)
    } finally {
      const next = waiting.shift()
      if (next === undefined) free += 1
      else next()
    }
  }
}
