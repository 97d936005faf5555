import { describe, expect, it } from 'vitest'
import { redactUrl } from '../../../src/core/redact.ts'

describe('redactUrl', () => {
  it.each([
    ['postgres://me:secret@h/db', 'postgres://me:***@h/db'],
    ['postgresql://me:secret@h:5432/db?table=t', 'postgresql://me:***@h:5432/db?table=t'],
    ['postgres://me@h/db', 'postgres://me@h/db'],
    ['postgres://me:@h/db', 'postgres://me:***@h/db'],
    ['postgres://me:a:b@h/db', 'postgres://me:***@h/db'],
    ['postgres://me:a@b@h/db', 'postgres://me:***@h/db'],
    ['postgres://:secret@h/db', 'postgres://:***@h/db'],
    ['postgres://h/db?user=me&password=secret&table=t', 'postgres://h/db?user=me&password=***&table=t'],
    ['postgres:///db?host=/run&PASSWORD=secret', 'postgres:///db?host=/run&PASSWORD=***'],
    ['postgres://h/db?sslpassword=secret', 'postgres://h/db?sslpassword=***'],
    ['postgres://h/db?pass%77ord=secret', 'postgres://h/db?pass%77ord=***'],
    ['https://me:secret@h/x.csv', 'https://me:***@h/x.csv'],
    [
      'https://h/x?X-Amz-Credential=k&X-Amz-Date=d&X-Amz-Signature=s&X-Amz-Security-Token=t',
      'https://h/x?X-Amz-Credential=***&X-Amz-Date=d&X-Amz-Signature=***&X-Amz-Security-Token=***',
    ],
    ['https://h/x?sv=1&sig=s%2B', 'https://h/x?sv=1&sig=***'],
    ['https://h/x?AWSAccessKeyId=k&Signature=s&Expires=1', 'https://h/x?AWSAccessKeyId=***&Signature=***&Expires=1'],
    ['https://h/x?X-Goog-Signature=s', 'https://h/x?X-Goog-Signature=***'],
    ['https://h/x?token=s#part', 'https://h/x?token=***#part'],
    ['https://h/x?access_token=s&api_key=k&apikey=k', 'https://h/x?access_token=***&api_key=***&apikey=***'],
    ['https://h/x?client_secret=s&auth_token=t', 'https://h/x?client_secret=***&auth_token=***'],
    ['https://h/x?q=1&page=2', 'https://h/x?q=1&page=2'],
    ['https://h/%E0%A4%A?%E0%A4%A=1', 'https://h/%E0%A4%A?%E0%A4%A=1'],
    ['https://h/a@b', 'https://h/a@b'],
    ['redis://:secret@h:6379/0', 'redis://:***@h:6379/0'],
    ['dynamodb://eu-west-1/T', 'dynamodb://eu-west-1/T'],
  ])('%s', (url, redacted) => {
    expect(redactUrl(url)).toBe(redacted)
  })

  it.each(['s3://bucket/a?token=b@c:d', './a.csv', '/tmp/a:b@c', '-', '', 'file:///tmp/a?password=b', 'C:\\a'])(
    'leaves %s as it is',
    (text) => {
      expect(redactUrl(text)).toBe(text)
    },
  )

  it('finds secrets in a postgres URL whose password has ?, # or / in it', () => {
    expect(redactUrl('postgres://me:se?cr#e/t@h/db')).not.toMatch(/se\?cr|e\/t/)
  })
})

describe('redactUrl of what only looks like a password', () => {
  it.each([
    'http://h:8080/a@b',
    'http://[::1]:80/a@b',
    'http://h:8080?q=a@b',
    'postgres://h:5432/db?user=a@b',
    'postgres://h/db?keyword=x&monkey=y',
  ])('leaves %s as it is', (url) => {
    expect(redactUrl(url)).toBe(url)
  })
})
