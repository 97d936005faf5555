import { expect, it } from 'vitest'
import { toDynamoError, wasRefused } from '../../../../src/connectors/dynamodb/errors.ts'

const refusal = { status: 400, headers: {}, operation: 'BatchWriteItem', url: 'dynamodb:///T' }
const body = (name: string, message = ''): string =>
  JSON.stringify({ __type: `com.amazonaws.dynamodb.v20120810#${name}`, message })

it.each([
  ['ProvisionedThroughputExceededException', 'SLUICE_THROTTLED', true],
  ['ThrottlingException', 'SLUICE_THROTTLED', true],
  ['RequestLimitExceeded', 'SLUICE_THROTTLED', true],
  ['ReplicatedWriteConflictException', 'SLUICE_SERVER', true],
  ['TransactionConflictException', 'SLUICE_SERVER', true],
  ['RequestThrottledException', 'SLUICE_THROTTLED', true],
  ['RequestTimeoutException', 'SLUICE_NETWORK', true],
  ['ResourceNotFoundException', 'SLUICE_NOT_FOUND', false],
  ['AccessDeniedException', 'SLUICE_ACCESS_DENIED', false],
  ['UnrecognizedClientException', 'SLUICE_CREDENTIALS', false],
  ['ExpiredTokenException', 'SLUICE_CREDENTIALS_EXPIRED', false],
  ['ValidationException', 'SLUICE_VALUE', false],
  ['constructor', 'SLUICE_PROTOCOL', false],
])('%s is %s', (name, code, retryable) => {
  expect(toDynamoError({ ...refusal, body: body(name) })).toMatchObject({ code, retryable })
})

it('goes by the status where the body is none of its own', () => {
  const of = (status: number): string => toDynamoError({ ...refusal, status, body: '<html>' }).code
  expect([of(500), of(503), of(429), of(403), of(413)]).toEqual([
    'SLUICE_SERVER',
    'SLUICE_SERVER',
    'SLUICE_THROTTLED',
    'SLUICE_ACCESS_DENIED',
    'SLUICE_VALUE',
  ])
})

it('tells an account that is full from one that makes too many tables at once', () => {
  const of = (message: string): object => toDynamoError({ ...refusal, body: body('LimitExceededException', message) })
  expect(of('Subscriber limit exceeded: There is a limit of 2500 tables per subscriber')).toMatchObject({
    code: 'SLUICE_USAGE',
    retryable: false,
  })
  expect(
    of('Subscriber limit exceeded: Only 50 tables can be created, updated, or deleted simultaneously'),
  ).toMatchObject({ code: 'SLUICE_THROTTLED', retryable: true })
})

it('says who may not do what', () => {
  const said = 'User: arn:aws:iam::1:user/a is not authorized to perform: dynamodb:BatchWriteItem'
  expect(toDynamoError({ ...refusal, body: body('AccessDeniedException', said) }).message).toContain(said)
})

it('knows a clock that is wrong', () => {
  const error = toDynamoError({ ...refusal, body: body('InvalidSignatureException', 'Signature expired: 2026 …') })
  expect(error).toMatchObject({ code: 'SLUICE_CREDENTIALS', hint: expect.stringContaining('clock') as unknown })
})

it('a refusal is sure, a failed server is not', () => {
  expect(wasRefused(toDynamoError({ ...refusal, body: body('ThrottlingException') }))).toBe(true)
  expect(wasRefused(toDynamoError({ ...refusal, status: 500, body: '' }))).toBe(false)
})
