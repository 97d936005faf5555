import { describe, expect, it } from 'vitest'
import type { Json } from '../../../../src/core/job.ts'
import { placeParts } from '../../../../src/stores/s3/open-writer.ts'
import { multipartEtag } from '../../../../src/stores/s3/s3-writer.ts'
import { tokenFromJson, tokenToJson, type UploadToken } from '../../../../src/stores/s3/upload-token.ts'

const token: UploadToken = {
  store: 's3',
  kind: 'multipart',
  key: 'b/k',
  known: ['u1'],
  sinceMs: 12,
  uploadId: 'u2',
  completing: { etag: null, sinceMs: 11, bytes: 7, parts: [{ number: 1, offset: 0, bytes: 7, etag: '"e"' }] },
}

describe('a token', () => {
  it.each([token, { ...token, kind: 'put' as const, known: null, uploadId: null, completing: null }])(
    'survives JSON',
    (one) => {
      const json = JSON.parse(JSON.stringify(tokenToJson(one))) as Json
      expect(tokenFromJson(json)).toEqual(one)
    },
  )

  it.each([null, 'x', [], {}, { store: 'local', key: 'b/k', kind: 'put' }, { store: 's3', key: 'b/k', kind: 'other' }])(
    'is not %j',
    (json) => {
      expect(() => tokenFromJson(json)).toThrow(expect.objectContaining({ code: 'SLUICE_STATE' }))
    },
  )
})

describe('placeParts', () => {
  const part = (number: number, bytes: number) => ({ number, bytes, etag: `"${number}"`, crc32: undefined })

  it('places parts by the size of the full ones', () => {
    expect(placeParts([part(2, 10), part(4, 10), part(7, 3)]).map(({ offset }) => offset)).toEqual([10, 30, 60])
    expect(placeParts([part(1, 3)])).toEqual([{ number: 1, offset: 0, bytes: 3, etag: '"1"' }])
  })

  it('leaves out a single part that could be the last one', () => {
    expect(placeParts([part(3, 10)])).toEqual([])
    expect(placeParts([])).toEqual([])
  })
})

describe('multipartEtag', () => {
  const part = (etag: string | null) => ({ number: 1, offset: 0, bytes: 1, etag })

  it("is the MD5 of the parts' MD5s", () => {
    // Two parts, each of no bytes: printf 'd41d8cd98f00b204e9800998ecf8427e%.0s' 1 2 | xxd -r -p | md5sum
    const empty = 'd41d8cd98f00b204e9800998ecf8427e'
    expect(multipartEtag([part(`"${empty}"`), part(empty)])).toBe('"5873dd45edd01f09c1ef2e7819369e8e-2"')
  })

  it('cannot be told where ETags are no MD5s', () => {
    expect(multipartEtag([part('"abc"')])).toBeNull()
    expect(multipartEtag([part(null)])).toBeNull()
  })
})
