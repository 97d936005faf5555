import { describe, expect, it } from 'vitest'
import { locate, parseEndpoint, s3Url, splitKey, splitPrefix } from '../../../../src/stores/s3/s3-address.ts'

describe('locate', () => {
  const at = (
    bucket: string,
    over: { endpoint?: string; region?: string; pathStyle?: 'auto' | 'always' | 'never' } = {},
  ) => {
    const target = {
      endpoint: parseEndpoint(over.endpoint),
      region: over.region ?? 'eu-west-1',
      pathStyle: over.pathStyle ?? ('auto' as const),
    }
    const { origin, path } = locate({ bucket, key: 'a b/100%.bin' }, target)
    return origin + path
  }

  it.each([
    [at('bucket'), 'https://bucket.s3.eu-west-1.amazonaws.com/a%20b/100%25.bin'],
    [at('with.dots'), 'https://s3.eu-west-1.amazonaws.com/with.dots/a%20b/100%25.bin'],
    [at('with.dots', { pathStyle: 'never' }), 'https://with.dots.s3.eu-west-1.amazonaws.com/a%20b/100%25.bin'],
    [at('UPPER_case'), 'https://s3.eu-west-1.amazonaws.com/UPPER_case/a%20b/100%25.bin'],
    [at('bucket', { region: 'cn-north-1' }), 'https://bucket.s3.cn-north-1.amazonaws.com.cn/a%20b/100%25.bin'],
    [at('bucket', { endpoint: 'http://127.0.0.1:9000' }), 'http://127.0.0.1:9000/bucket/a%20b/100%25.bin'],
    [at('bucket', { endpoint: 'http://[::1]:9000/' }), 'http://[::1]:9000/bucket/a%20b/100%25.bin'],
    [at('bucket', { endpoint: 'https://minio.example/s3/' }), 'https://minio.example/s3/bucket/a%20b/100%25.bin'],
    [
      at('bucket', { endpoint: 'https://minio.example', pathStyle: 'never' }),
      'https://bucket.minio.example/a%20b/100%25.bin',
    ],
    [
      at('bucket', { endpoint: 'https://s3.us-west-2.amazonaws.com' }),
      'https://bucket.s3.us-west-2.amazonaws.com/a%20b/100%25.bin',
    ],
    [at('bucket', { pathStyle: 'always' }), 'https://s3.eu-west-1.amazonaws.com/bucket/a%20b/100%25.bin'],
  ])('%s', (got, wanted) => {
    expect(got).toBe(wanted)
  })

  it.each([
    ['http://127.0.0.1:9000', 'bucket'],
    ['http://[::1]:9000', 'bucket'],
    ['http://minio.example', 'no host'],
  ])('refuses %s without path style for the bucket "%s"', (endpoint, bucket) => {
    expect(() => at(bucket, { endpoint, pathStyle: 'never' })).toThrow(
      expect.objectContaining({ code: 'SLUICE_USAGE', hint: expect.stringContaining('--path-style always') }),
    )
  })

  it('has no key for the bucket itself', () => {
    const target = { endpoint: null, region: 'us-east-1', pathStyle: 'auto' as const }
    expect(locate({ bucket: 'b12' }, target).path).toBe('/')
    expect(locate({ bucket: 'b12' }, { ...target, pathStyle: 'always' }).path).toBe('/b12')
  })
})

describe('keys and endpoints', () => {
  it('splits at the first slash only', () => {
    expect(splitKey('b/k//x/')).toEqual({ bucket: 'b', key: 'k//x/' })
    expect(splitKey('b//k')).toEqual({ bucket: 'b', key: '/k' })
    expect(splitPrefix('b/')).toEqual({ bucket: 'b', key: '' })
    expect(splitPrefix('b')).toEqual({ bucket: 'b', key: '' })
    expect(s3Url({ bucket: 'b', key: '100%.bin' })).toBe('s3://b/100%.bin')
  })

  it.each(['', '/', '/k', 'b', 'b/'])('refuses %j as an object', (key) => {
    expect(() => splitKey(key)).toThrow(expect.objectContaining({ code: 'SLUICE_USAGE' }))
  })

  it.each(['localhost:9000', 'ftp://x', 'nonsense', '//host'])('refuses the endpoint %j', (endpoint) => {
    expect(() => parseEndpoint(endpoint)).toThrow(expect.objectContaining({ code: 'SLUICE_USAGE' }))
  })
})
