import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  amzDate,
  EMPTY_SHA256,
  encodeKey,
  encodeQuery,
  encodeRfc3986,
  sha256Hex,
  signV4,
  type SignInput,
} from '../../../src/aws/sign-v4.ts'

/** Amazon S3 API Reference, "Authenticating Requests: Using the Authorization Header", "Examples: Signature Calculations". */
const S3_EXAMPLE = {
  host: 'examplebucket.s3.amazonaws.com',
  query: [],
  timeMs: Date.UTC(2013, 4, 24),
  region: 'us-east-1',
  service: 's3',
  credentials: { accessKeyId: 'AKIAIOSFODNN7EXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY' },
} as const

/** AWS Signature Version 4 test suite: the same request throughout, but for what a case is named after. */
const SUITE = {
  host: 'example.amazonaws.com',
  path: '/',
  query: [],
  headers: {},
  payloadHash: EMPTY_SHA256,
  timeMs: Date.UTC(2015, 7, 30, 12, 36, 0),
  region: 'us-east-1',
  service: 'service',
  credentials: { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' },
} as const

const signatureOf = (input: SignInput): string | undefined =>
  /Signature=([0-9a-f]{64})$/.exec(signV4(input).authorization ?? '')?.[1]

describe("S3's published examples", () => {
  const hashed = (hash: string): Record<string, string> => ({ 'x-amz-content-sha256': hash })

  it('GET Object, with a range', () => {
    const headers = { range: 'bytes=0-9', ...hashed(EMPTY_SHA256) }
    const signed = signV4({ ...S3_EXAMPLE, method: 'GET', path: '/test.txt', headers, payloadHash: EMPTY_SHA256 })
    expect(signed.authorization).toBe(
      'AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, ' +
        'SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, ' +
        'Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
    )
    expect(signed['x-amz-date']).toBe('20130524T000000Z')
  })

  it('PUT Object, with a key that is encoded', () => {
    const payloadHash = sha256Hex('Welcome to Amazon S3.')
    expect(payloadHash).toBe('44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072')
    const headers = {
      date: 'Fri, 24 May 2013 00:00:00 GMT',
      'x-amz-storage-class': 'REDUCED_REDUNDANCY',
      ...hashed(payloadHash),
    }
    const path = `/${encodeKey('test$file.text')}`
    expect(signatureOf({ ...S3_EXAMPLE, method: 'PUT', path, headers, payloadHash })).toBe(
      '98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd',
    )
  })

  it('GET Bucket Lifecycle, a query without a value', () => {
    const query = [['lifecycle', '']] as const
    const headers = hashed(EMPTY_SHA256)
    expect(signatureOf({ ...S3_EXAMPLE, method: 'GET', path: '/', query, headers, payloadHash: EMPTY_SHA256 })).toBe(
      'fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543',
    )
  })

  it('GET Bucket (List Objects)', () => {
    const query = [
      ['prefix', 'J'],
      ['max-keys', '2'],
    ] as const
    const headers = hashed(EMPTY_SHA256)
    expect(signatureOf({ ...S3_EXAMPLE, method: 'GET', path: '/', query, headers, payloadHash: EMPTY_SHA256 })).toBe(
      '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7',
    )
  })
})

describe("AWS's test suite", () => {
  it.each<[string, Partial<SignInput> & { method: string }, string]>([
    ['get-vanilla', { method: 'GET' }, '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31'],
    [
      'get-vanilla-query-order-key-case',
      {
        method: 'GET',
        query: [
          ['Param2', 'value2'],
          ['Param1', 'value1'],
        ],
      },
      'b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500',
    ],
    ['post-vanilla', { method: 'POST' }, '5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b'],
  ])('%s', (_, over, signature) => {
    expect(signatureOf({ ...SUITE, ...over })).toBe(signature)
  })
})

describe('signV4', () => {
  it('signs a session token and sends it', () => {
    const credentials = { ...SUITE.credentials, sessionToken: 'token' }
    const signed = signV4({ ...SUITE, method: 'GET', credentials })
    expect(signed['x-amz-security-token']).toBe('token')
    expect(signed.authorization).toContain('SignedHeaders=host;x-amz-date;x-amz-security-token')
  })

  it('derives another key for another secret, region and day', () => {
    const base = { ...SUITE, method: 'GET' }
    const signatures = [
      base,
      { ...base, region: 'eu-west-1' },
      { ...base, timeMs: base.timeMs + 86_400_000 },
      { ...base, credentials: { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'other' } },
    ].map(signatureOf)
    expect(new Set(signatures).size).toBe(4)
    expect(signatureOf(base)).toBe(signatures[0])
  })

  it('writes times as AWS wants them', () => {
    expect(amzDate(Date.UTC(2026, 0, 2, 3, 4, 5, 678))).toBe('20260102T030405Z')
  })
})

describe('encoding', () => {
  it.each([
    ['100%.bin', '100%25.bin'],
    ['a+b', 'a%2Bb'],
    ['a b', 'a%20b'],
    ['ü', '%C3%BC'],
    ['a//b/./c/../d/', 'a//b/./c/../d/'],
    ["!'()*~-._", '%21%27%28%29%2A~-._'],
    ['a%20b', 'a%2520b'],
    ['?#&=;,:@$', '%3F%23%26%3D%3B%2C%3A%40%24'],
    ['😀', '%F0%9F%98%80'],
  ])('of the key %j', (key, path) => {
    expect(encodeKey(key)).toBe(path)
  })

  it('refuses half a surrogate pair', () => {
    expect(() => encodeKey('\ud800')).toThrow(expect.objectContaining({ code: 'SLUICE_USAGE' }))
  })

  it('sorts a query by its encoded names', () => {
    expect(
      encodeQuery([
        ['b', '2'],
        ['a b', '1/ü'],
        ['B', ''],
        ['b', '1'],
      ]),
    ).toBe('B=&a%20b=1%2F%C3%BC&b=1&b=2')
  })

  it('is undone by decoding, whatever the text, and leaves only unreserved characters', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        const encoded = encodeRfc3986(text)
        expect(decodeURIComponent(encoded)).toBe(text)
        expect(encoded).toMatch(/^([A-Za-z0-9\-._~]|%[0-9A-F]{2})*$/)
      }),
    )
  })
})
