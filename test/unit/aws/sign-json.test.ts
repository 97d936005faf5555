import { afterEach, expect, it, vi } from 'vitest'
import { JsonSigner } from '../../../src/aws/sign-json.ts'
import { sha256Hex, signV4 } from '../../../src/aws/sign-v4.ts'

afterEach(() => vi.useRealTimers())

const PLACE = { host: 'dynamodb.eu-west-1.amazonaws.com', region: 'eu-west-1', service: 'dynamodb' }
const contentType = 'application/x-amz-json-1.0'

function headersOf(head: string): Record<string, string> {
  const lines = head.trimEnd().split('\r\n').slice(1)
  return Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]))
}

it.each([
  ['plain keys', undefined, '2026-12-02T10:00:00Z'],
  ['a session token', 'token+/=', '2026-12-02T23:59:59Z'],
  ['the next day', undefined, '2026-12-03T00:00:00Z'],
])('signs as signV4 does: %s', (_, sessionToken, time) => {
  vi.useFakeTimers({ now: new Date(time), toFake: ['Date'] })
  const credentials = { accessKeyId: 'AKID', secretAccessKey: 'secret', sessionToken }
  const body = Buffer.from('{"TableName":"ü"}')
  const target = 'DynamoDB_20120810.DescribeTable'
  const signer = new JsonSigner({ ...PLACE, path: '/', contentType })
  const expected = signV4({
    ...PLACE,
    method: 'POST',
    path: '/',
    query: [],
    headers: { 'content-type': contentType, 'x-amz-target': target },
    payloadHash: sha256Hex(body),
    timeMs: Date.now(),
    credentials,
  })
  for (let i = 0; i < 2; i += 1)
    expect(headersOf(signer.head(target, body, credentials))).toEqual({
      ...expected,
      host: PLACE.host,
      'content-length': String(body.byteLength),
    })
})

it('changes the key with the credentials, and signs nothing without any', () => {
  const signer = new JsonSigner({ ...PLACE, path: '/', contentType })
  const body = Buffer.from('{}')
  const one = signer.head('X', body, { accessKeyId: 'a', secretAccessKey: 'b' })
  expect(signer.head('X', body, { accessKeyId: 'a', secretAccessKey: 'c' })).not.toBe(one)
  expect(signer.head('X', body, null)).not.toContain('authorization')
})
