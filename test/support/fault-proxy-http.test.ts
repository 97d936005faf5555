import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type HttpFaultProxy, startHttpFaultProxy } from './fault-proxy-http.ts'
import { freshBucket, s3Do, s3Request, sharedServices } from './services.ts'

const store = sharedServices().versitygw
let proxy: HttpFaultProxy
let bucket: string

beforeEach(async () => {
  bucket = await freshBucket(store, 'faults')
  proxy = await startHttpFaultProxy(store)
})
afterEach(() => proxy.stop())

describe('HTTP faults in front of S3', () => {
  it('passes signed requests, with what they carry', async () => {
    const path = `/${bucket}/ä b`
    await s3Do(proxy, { method: 'PUT', path, body: 'x'.repeat(1_000_000) })
    expect((await s3Do(store, { method: 'GET', path })).body.length).toBe(1_000_000)
    expect((await s3Do(proxy, { method: 'GET', path, headers: { range: 'bytes=0-9' } })).body.length).toBe(10)
    expect((await s3Request(proxy, { method: 'HEAD', path: `/${bucket}/none` })).status).toBe(404)
    expect(
      proxy.requests.map(({ method, status, bodyBytes, faulted }) => [method, status, bodyBytes, faulted]),
    ).toEqual([
      ['PUT', 200, 1_000_000, false],
      ['GET', 206, 0, false],
      ['HEAD', 404, 0, false],
    ])
  })

  it('answers 503 with Retry-After in place of the service, the second time it is asked only', async () => {
    proxy.add({
      method: 'PUT',
      url: /\/k/,
      nth: 2,
      answer: { status: 503, headers: { 'retry-after': '1' }, body: '<Error><Code>SlowDown</Code></Error>' },
    })
    const put = (key: string) => s3Request(proxy, { method: 'PUT', path: `/${bucket}/${key}`, body: key })
    expect((await put('k1')).status).toBe(200)
    const slow = await put('k2')
    expect([slow.status, slow.headers['retry-after'], slow.body.toString()]).toEqual([
      503,
      '1',
      '<Error><Code>SlowDown</Code></Error>',
    ])
    expect((await put('k3')).status).toBe(200)
    expect((await s3Request(store, { method: 'HEAD', path: `/${bucket}/k2` })).status).toBe(404)
  })

  it('loses an answer: the service did it, and the client got a reset, or a 500', async () => {
    proxy.add({ method: 'PUT', url: /cut/, answer: 'cut', forward: true })
    proxy.add({ method: 'PUT', url: /fail/, answer: { status: 500 }, forward: true })
    await expect(s3Do(proxy, { method: 'PUT', path: `/${bucket}/cut`, body: 'a' })).rejects.toThrow(/hang up|reset/i)
    expect((await s3Request(proxy, { method: 'PUT', path: `/${bucket}/fail`, body: 'b' })).status).toBe(500)
    for (const [key, body] of Object.entries({ cut: 'a', fail: 'b' })) {
      expect((await s3Do(store, { method: 'GET', path: `/${bucket}/${key}` })).body.toString()).toBe(body)
    }
  })

  it('cuts a request that the service then never saw', async () => {
    proxy.add({ method: 'PUT', answer: 'cut' })
    await expect(s3Do(proxy, { method: 'PUT', path: `/${bucket}/k`, body: 'a' })).rejects.toThrow(/hang up|reset/i)
    expect((await s3Request(store, { method: 'HEAD', path: `/${bucket}/k` })).status).toBe(404)
  })

  it('cuts the body of an answer', async () => {
    const path = `/${bucket}/k`
    await s3Do(store, { method: 'PUT', path, body: 'x'.repeat(1_000_000) })
    proxy.add({ method: 'GET', answer: { cutBodyAfter: 300_000 } })
    await expect(s3Do(proxy, { method: 'GET', path })).rejects.toThrow(/aborted|reset/i)
    expect((await s3Do(proxy, { method: 'GET', path })).body.length).toBe(1_000_000)
  })
})
