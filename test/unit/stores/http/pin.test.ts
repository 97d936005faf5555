import { describe, expect, it } from 'vitest'
import { contentLength, contradicts, ifRange, parseContentRange, pinOf } from '../../../../src/stores/http/pin.ts'

const DATE = 'Wed, 21 Oct 2015 07:28:00 GMT'

describe('HTTP pins', () => {
  it.each([
    [{ etag: '"a"' }, 5, '"a"', '"a"'],
    [{ etag: '"a"', 'last-modified': DATE }, null, '"a"', '"a"'],
    [{ etag: 'W/"a"', 'last-modified': DATE }, 5, `modified:${DATE};size:5`, DATE],
    [{ etag: '"a"', 'content-encoding': 'GZIP' }, 5, '"a";encoding:gzip', '"a"'],
    [{ 'last-modified': DATE, 'content-encoding': 'br' }, 5, `modified:${DATE};size:5;encoding:br`, DATE],
    [{ etag: '"a;encoding:gzip"', 'content-encoding': 'identity' }, 5, '"a;encoding:gzip"', '"a;encoding:gzip"'],
  ])('are made of %j', (headers, size, pin, condition) => {
    expect(pinOf(headers, size)).toBe(pin)
    expect(ifRange(pin)).toBe(condition)
    expect(contradicts(pin, headers, size)).toBe(false)
  })

  it.each([[{}], [{ etag: 'a' }], [{ etag: 'W/"a"' }], [{ 'last-modified': 'yesterday' }]])(
    'are not made of %j',
    (headers) => {
      expect(pinOf(headers, 5)).toBeNull()
    },
  )

  it('need not be repeated in an answer to If-Range, but may not be contradicted', () => {
    expect(contradicts('"a"', {}, 5)).toBe(false)
    expect(contradicts('"a"', { etag: '"b"' }, 5)).toBe(true)
    expect(contradicts('"a"', { etag: 'W/"a"' }, 5)).toBe(true)
    expect(contradicts('"a"', { 'content-encoding': 'gzip' }, 5)).toBe(true)
    expect(contradicts('"a;encoding:gzip"', {}, 5)).toBe(false)
    const dated = `modified:${DATE};size:5`
    expect(contradicts(dated, {}, 5)).toBe(false)
    expect(contradicts(dated, {}, 6)).toBe(true)
    expect(contradicts(dated, { 'last-modified': 'Thu, 22 Oct 2015 07:28:00 GMT' }, 5)).toBe(true)
  })
})

describe('HTTP lengths', () => {
  it.each([
    ['bytes 0-0/10', { range: { start: 0, end: 1 }, size: 10 }],
    ['bytes 5-9/*', { range: { start: 5, end: 10 }, size: null }],
    ['bytes */10', { range: null, size: 10 }],
    ['bytes 9-5/10', null],
    ['items 0-1/2', null],
    [undefined, null],
  ])('are read from Content-Range: %s', (header, expected) => {
    expect(parseContentRange(header)).toEqual(expected)
  })

  it.each([
    ['0', 0],
    [' 12 ', 12],
    ['12, 12', null],
    ['-1', null],
    ['1e3', null],
    [undefined, null],
  ])('are read from Content-Length: %s', (header, expected) => {
    expect(contentLength({ 'content-length': header })).toBe(expected)
  })
})
