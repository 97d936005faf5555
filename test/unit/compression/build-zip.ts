import { crc32, deflateRawSync } from 'node:zlib'

/** One file of a zip to be made; what is given besides name and data is written as it is, so that archives can lie. */
export interface ZipFileSpec {
  readonly name: string | Buffer
  readonly data: Buffer
  readonly method?: number
  readonly flags?: number
  readonly raw?: Buffer
  readonly crc?: number
  readonly size?: number
  readonly compressedSize?: number
  /** Sizes behind the data, as a writer that streams has it. */
  readonly descriptor?: boolean
  readonly zip64?: boolean
  /** Offset of the header in the directory, where it is not to be the true one. */
  readonly offset?: number
}

/** A zip archive, byte by byte as APPNOTE 4.3 has it. */
export function buildZip(files: readonly ZipFileSpec[], o: { comment?: string; zip64End?: boolean } = {}): Buffer {
  const parts: Buffer[] = []
  const directory: Buffer[] = []
  let at = 0
  for (const file of files) {
    const entry = layOut(file, at)
    parts.push(entry.local)
    directory.push(entry.central)
    at += entry.local.byteLength
  }
  const central = Buffer.concat(directory)
  return Buffer.concat([...parts, central, ending({ count: files.length, bytes: central.byteLength, at }, o)])
}

function layOut(file: ZipFileSpec, at: number): { local: Buffer; central: Buffer } {
  const method = file.method ?? 8
  const raw = file.raw ?? (method === 8 ? deflateRawSync(file.data) : file.data)
  const name = typeof file.name === 'string' ? Buffer.from(file.name) : file.name
  const crc = file.crc ?? crc32(file.data)
  const size = file.size ?? file.data.byteLength
  const compressed = file.compressedSize ?? raw.byteLength
  const descriptor = file.descriptor === true
  const flags = (file.flags ?? (typeof file.name === 'string' ? 0x800 : 0)) | (descriptor ? 8 : 0)
  const extra = file.zip64 === true ? zip64Extra([size, compressed]) : Buffer.alloc(0)
  const sizes = file.zip64 === true ? [0xffffffff, 0xffffffff] : [compressed, size]
  const shared = (inLocal: boolean): Buffer => {
    const b = Buffer.alloc(26)
    b.writeUInt16LE(45, 0)
    b.writeUInt16LE(flags, 2)
    b.writeUInt16LE(method, 4)
    b.writeUInt32LE(inLocal && descriptor ? 0 : crc, 10)
    b.writeUInt32LE(inLocal && descriptor ? 0 : (sizes[0] ?? 0), 14)
    b.writeUInt32LE(inLocal && descriptor ? 0 : (sizes[1] ?? 0), 18)
    b.writeUInt16LE(name.byteLength, 22)
    b.writeUInt16LE(extra.byteLength, 24)
    return b
  }
  const after = Buffer.alloc(descriptor ? 16 : 0)
  if (descriptor) {
    after.writeUInt32LE(0x08074b50, 0)
    after.writeUInt32LE(crc, 4)
    after.writeUInt32LE(compressed, 8)
    after.writeUInt32LE(size, 12)
  }
  const tail = Buffer.alloc(14)
  tail.writeUInt32LE(file.offset ?? at, 10)
  return {
    local: Buffer.concat([Buffer.from('PK\x03\x04', 'latin1'), shared(true), name, extra, raw, after]),
    central: Buffer.concat([Buffer.from('PK\x01\x02\x2d\x03', 'latin1'), shared(false), tail, name, extra]),
  }
}

function zip64Extra(values: readonly number[]): Buffer {
  const b = Buffer.alloc(4 + values.length * 8)
  b.writeUInt16LE(1, 0)
  b.writeUInt16LE(values.length * 8, 2)
  values.forEach((value, index) => b.writeBigUInt64LE(BigInt(value), 4 + index * 8))
  return b
}

function ending(
  directory: { count: number; bytes: number; at: number },
  o: { comment?: string; zip64End?: boolean },
): Buffer {
  const comment = Buffer.from(o.comment ?? '')
  const end = Buffer.alloc(22)
  const zip64 = o.zip64End === true
  end.write('PK\x05\x06', 0, 'latin1')
  end.writeUInt16LE(zip64 ? 0xffff : directory.count, 8)
  end.writeUInt16LE(zip64 ? 0xffff : directory.count, 10)
  end.writeUInt32LE(zip64 ? 0xffffffff : directory.bytes, 12)
  end.writeUInt32LE(zip64 ? 0xffffffff : directory.at, 16)
  end.writeUInt16LE(comment.byteLength, 20)
  if (!zip64) return Buffer.concat([end, comment])
  const record = Buffer.alloc(56)
  record.write('PK\x06\x06', 0, 'latin1')
  record.writeBigUInt64LE(44n, 4)
  record.writeBigUInt64LE(BigInt(directory.count), 24)
  record.writeBigUInt64LE(BigInt(directory.count), 32)
  record.writeBigUInt64LE(BigInt(directory.bytes), 40)
  record.writeBigUInt64LE(BigInt(directory.at), 48)
  const locator = Buffer.alloc(20)
  locator.write('PK\x06\x07', 0, 'latin1')
  locator.writeBigUInt64LE(BigInt(directory.at + directory.bytes), 8)
  locator.writeUInt32LE(1, 16)
  return Buffer.concat([record, locator, end, comment])
}
