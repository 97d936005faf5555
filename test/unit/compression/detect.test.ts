import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import {
  compressionOfName,
  detectCompression,
  isCutMagic,
  stripCompressionExtension,
} from '../../../src/compression/detect.ts'

const bytes = (...values: number[]): Uint8Array => Uint8Array.from(values)

describe('detectCompression', () => {
  it('knows the magic bytes', () => {
    expect(detectCompression(gzipSync('a'))).toBe('gzip')
    expect(detectCompression(bytes(0x28, 0xb5, 0x2f, 0xfd))).toBe('zstd')
    expect(detectCompression(bytes(0x50, 0x2a, 0x4d, 0x18))).toBe('zstd')
    expect(detectCompression(bytes(0x5f, 0x2a, 0x4d, 0x18))).toBe('zstd')
    expect(detectCompression(Buffer.from('PK\x03\x04'))).toBe('zip')
    expect(detectCompression(Buffer.from('PK\x05\x06'))).toBe('zip')
    expect(detectCompression(Buffer.from('BZh9314159265359', 'latin1').subarray(0, 4))).toBe('none')
    expect(detectCompression(Buffer.from('425a6839314159265359', 'hex'))).toBe('bzip2')
    expect(detectCompression(Buffer.from('425a6831177245385090', 'hex'))).toBe('bzip2')
  })

  it('takes text for text', () => {
    for (const text of ['', 'id,name\n', 'PK,name\n', 'BZh1,x,y,z\n', 'P*M\n', '(a)']) {
      expect(detectCompression(Buffer.from(text))).toBe('none')
    }
  })
})

describe('isCutMagic', () => {
  it('sees a beginning of the magic bytes', () => {
    expect(isCutMagic('gzip', bytes())).toBe(true)
    expect(isCutMagic('gzip', bytes(0x1f))).toBe(true)
    expect(isCutMagic('gzip', Buffer.from('a'))).toBe(false)
    expect(isCutMagic('zstd', bytes(0x28, 0xb5))).toBe(true)
    expect(isCutMagic('zstd', bytes(0x53, 0x2a, 0x4d))).toBe(true)
    expect(isCutMagic('zstd', Buffer.from('(b'))).toBe(false)
  })
})

describe('names', () => {
  it('tells the compression by the ending', () => {
    expect(compressionOfName('a.csv.gz')).toBe('gzip')
    expect(compressionOfName('A.CSV.GZ')).toBe('gzip')
    expect(compressionOfName('a.zst')).toBe('zstd')
    expect(compressionOfName('a.bz2')).toBe('bzip2')
    expect(compressionOfName('a.zip')).toBe('zip')
    expect(compressionOfName('gz')).toBe(null)
    expect(compressionOfName('a.csv')).toBe(null)
  })

  it('strips that ending only', () => {
    expect(stripCompressionExtension('a.csv.GZ')).toBe('a.csv')
    expect(stripCompressionExtension('a.csv')).toBe('a.csv')
    expect(stripCompressionExtension('a.zip')).toBe('a')
  })
})
