const MAGIC = 0xfd2fb528
const DICTIONARY_ID_BYTES = [0, 1, 2, 4] as const
const CONTENT_SIZE_BYTES = [0, 2, 4, 8] as const

/** libzstd's default bound (ZSTD_WINDOWLOG_LIMIT_DEFAULT, 27): what a frame may make its reader hold. */
const LARGEST_WINDOW_BYTES = 128 * 1024 * 1024

/** RFC 8878, 3.1.1.1.2 */
function windowBytes(descriptor: number): number {
  const base = 2 ** (10 + (descriptor >> 3))
  return base + (base / 8) * (descriptor & 7)
}

/**
 * Finds where a zstd frame ends without decoding it (RFC 8878, 3.1.1): frame header, block headers, checksum. So that a decoder can be
 * given one frame exactly, and a cut or what follows the frame is seen whatever the decoder makes of it.
 */
export class ZstdFrameScanner {
  /** Header bytes being collected: at most 14 of a frame header, 3 of a block header. */
  readonly #small = Buffer.alloc(18)
  #have = 0
  #need = 5
  #stage: 'magic' | 'header' | 'block' | 'ended' = 'magic'
  /** Bytes of block content or checksum still to be passed over. */
  #skip = 0
  #lastBlock = false
  #checksum = false

  get ended(): boolean {
    return this.#stage === 'ended'
  }

  /**
   * Looks at the next bytes of the frame; returns how many of them belong to it (all, unless it ends here).
   *
   * @throws an Error whose message says what is no zstd
   */
  scan(chunk: Uint8Array): number {
    let at = 0
    while (!this.ended && at < chunk.byteLength) {
      if (this.#skip > 0) {
        const passed = Math.min(this.#skip, chunk.byteLength - at)
        this.#skip -= passed
        at += passed
      } else {
        const taken = Math.min(this.#need - this.#have, chunk.byteLength - at)
        this.#small.set(chunk.subarray(at, at + taken), this.#have)
        this.#have += taken
        at += taken
        if (this.#have === this.#need) this.#advance()
      }
      if (this.#skip === 0 && this.#stage === 'block' && this.#have === 0 && this.#lastBlock) this.#stage = 'ended'
    }
    return at
  }

  #advance(): void {
    if (this.#stage === 'magic') this.#startHeader()
    else if (this.#stage === 'header') {
      this.#checkHeader()
      this.#expectBlock()
    } else this.#passBlock()
  }

  #startHeader(): void {
    if (this.#small.readUInt32LE(0) !== MAGIC) throw new Error('not a zstd frame')
    const descriptor = this.#small[4] ?? 0
    if ((descriptor & 0x08) !== 0) throw new Error('zstd frame header with a reserved bit')
    this.#checksum = (descriptor & 0x04) !== 0
    const single = (descriptor & 0x20) !== 0
    const sizeFlag = descriptor >> 6
    const contentSize = sizeFlag === 0 && single ? 1 : (CONTENT_SIZE_BYTES[sizeFlag] ?? 0)
    this.#need = 5 + (single ? 0 : 1) + (DICTIONARY_ID_BYTES[descriptor & 3] ?? 0) + contentSize
    this.#stage = 'header'
    if (this.#need === this.#have) this.#expectBlock()
  }

  /** What the decoder would refuse as if it were corrupt: a dictionary that is not ours, and a window that is past its bound. */
  #checkHeader(): void {
    const descriptor = this.#small[4] ?? 0
    const single = (descriptor & 0x20) !== 0
    const dictionaryBytes = DICTIONARY_ID_BYTES[descriptor & 3] ?? 0
    const dictionaryAt = single ? 5 : 6
    const dictionary = dictionaryBytes === 0 ? 0 : this.#small.readUIntLE(dictionaryAt, dictionaryBytes)
    if (dictionary !== 0)
      throw new Error(`zstd data made with a dictionary (id ${dictionary}), which sluice does not have`)
    const window = single ? this.#contentSize(dictionaryAt + dictionaryBytes) : windowBytes(this.#small[5] ?? 0)
    if (window > LARGEST_WINDOW_BYTES)
      throw new Error(
        `zstd data whose window is ${window} bytes (zstd --long), and ${LARGEST_WINDOW_BYTES} are the most that is read`,
      )
  }

  #contentSize(at: number): number {
    const bytes = this.#need - at
    if (bytes === 8) return Number(this.#small.readBigUInt64LE(at))
    return this.#small.readUIntLE(at, bytes) + (bytes === 2 ? 256 : 0)
  }

  #expectBlock(): void {
    this.#stage = 'block'
    this.#have = 0
    this.#need = 3
  }

  #passBlock(): void {
    const header = this.#small.readUIntLE(0, 3)
    const kind = (header >> 1) & 3
    if (kind === 3) throw new Error('zstd block of a reserved type')
    this.#lastBlock = (header & 1) !== 0
    this.#skip = kind === 1 ? 1 : header >> 3
    this.#have = 0
    if (this.#lastBlock && this.#checksum) {
      this.#skip += 4
      this.#checksum = false
    }
  }
}
