import { describe, expect, it } from 'vitest'
import { statusOf, toS3Error } from '../../../../src/stores/s3/s3-errors.ts'

const refusal = (
  status: number,
  code: string,
  over: { purpose?: 'read' | 'write'; headers?: Record<string, string> } = {},
) =>
  toS3Error({
    status,
    headers: over.headers ?? {},
    body: code === '' ? '' : `<Error><Code>${code}</Code><Message>m</Message><RequestId>R7</RequestId></Error>`,
    url: 's3://b/k',
    purpose: over.purpose ?? 'read',
  })

describe('toS3Error', () => {
  it.each([
    [404, 'NoSuchKey', 'SLUICE_NOT_FOUND'],
    [404, 'NoSuchBucket', 'SLUICE_NOT_FOUND'],
    [404, '', 'SLUICE_NOT_FOUND'],
    [400, 'KMS.DisabledException', 'SLUICE_ACCESS_DENIED'],
    [301, 'PermanentRedirect', 'SLUICE_USAGE'],
    [301, '', 'SLUICE_USAGE'],
    [400, 'AuthorizationHeaderMalformed', 'SLUICE_USAGE'],
    [403, 'AccessDenied', 'SLUICE_ACCESS_DENIED'],
    [403, '', 'SLUICE_ACCESS_DENIED'],
    [403, 'InvalidAccessKeyId', 'SLUICE_CREDENTIALS'],
    [403, 'SignatureDoesNotMatch', 'SLUICE_CREDENTIALS'],
    [403, 'RequestTimeTooSkewed', 'SLUICE_CREDENTIALS'],
    [400, 'ExpiredToken', 'SLUICE_CREDENTIALS_EXPIRED'],
    [503, 'SlowDown', 'SLUICE_THROTTLED'],
    [200, 'SlowDown', 'SLUICE_THROTTLED'],
    [503, '', 'SLUICE_THROTTLED'],
    [429, '', 'SLUICE_THROTTLED'],
    [500, 'InternalError', 'SLUICE_SERVER'],
    [502, '', 'SLUICE_SERVER'],
    [504, '', 'SLUICE_SERVER'],
    [400, 'RequestTimeout', 'SLUICE_NETWORK'],
    [400, 'BadDigest', 'SLUICE_NETWORK'],
    [507, '', 'SLUICE_DISK_FULL'],
    [507, 'XMinioStorageFull', 'SLUICE_DISK_FULL'],
    [416, 'InvalidRange', 'SLUICE_SOURCE_CHANGED'],
    [501, 'NotImplemented', 'SLUICE_PROTOCOL'],
    [400, 'SomethingNew', 'SLUICE_PROTOCOL'],
    [302, '', 'SLUICE_USAGE'],
  ])('%i %s is %s', (status, code, wanted) => {
    const error = refusal(status, code)
    expect(error.code).toBe(wanted)
    expect(error.where.url).toBe('s3://b/k')
    expect(statusOf(error)).toMatchObject({ status, s3Code: code })
  })

  it('takes a failed condition for a change on the way down, for an existing object on the way up', () => {
    expect(refusal(412, 'PreconditionFailed').code).toBe('SLUICE_SOURCE_CHANGED')
    expect(refusal(412, '', { purpose: 'write' }).code).toBe('SLUICE_EXISTS')
    expect(refusal(409, 'ConditionalRequestConflict', { purpose: 'write' }).code).toBe('SLUICE_EXISTS')
    expect(refusal(409, 'OperationAborted', { purpose: 'write' }).code).toBe('SLUICE_SERVER')
  })

  it('names bucket or object, the code and the request', () => {
    expect(refusal(404, 'NoSuchBucket').message).toBe('the bucket does not exist (NoSuchBucket, request R7)')
    expect(refusal(404, 'NoSuchKey').message).toContain('object')
    expect(refusal(403, 'RequestTimeTooSkewed').hint).toContain('clock')
    expect(refusal(400, 'KMS.NotFoundException').hint).toContain('kms:Decrypt')
    expect(refusal(307, '').hint).toContain('--region')
  })

  it('passes Retry-After on', () => {
    expect(refusal(503, 'SlowDown', { headers: { 'retry-after': '7' } }).retryAfterMs).toBe(7000)
  })
})
