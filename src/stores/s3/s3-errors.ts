import { SluiceError, type ErrorCode } from '../../core/errors.ts'
import { retryAfterMs } from '../../aws/http-pool.ts'
import { parseErrorBody, type S3ErrorBody } from './s3-xml.ts'

/** What a refused request was about. */
export interface S3Refusal {
  readonly status: number
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly body: string
  /** For people. */
  readonly url: string
  /** A failed condition means another thing on the way down than on the way up. */
  readonly purpose: 'read' | 'write'
}

type Rule = readonly [code: ErrorCode, message: string, hint?: string]

const SKEW_HINT = 'the clock of this machine is wrong by more than 15 minutes: set it (timedatectl, ntpd)'
const KEY_HINT = 'check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the profile'
const REGION_HINT = 'check --region (aws s3api get-bucket-location tells it) and --s3-endpoint'
const ELSEWHERE: Rule = ['SLUICE_USAGE', 'the bucket lies in another region, or behind another endpoint', REGION_HINT]
const KMS_HINT = 'the key that encrypts the object must be enabled, and allow kms:Decrypt and kms:GenerateDataKey'
const RENEW_HINT = 'sign in again or renew the session token, then resume'

/** S3's error codes (Amazon S3 API Reference, "Error responses"); what is missing here goes by its status. */
const RULES: Readonly<Record<string, Rule>> = {
  NoSuchBucket: ['SLUICE_NOT_FOUND', 'the bucket does not exist', 'check the bucket name and the endpoint'],
  NoSuchKey: ['SLUICE_NOT_FOUND', 'the object does not exist'],
  NoSuchUpload: [
    'SLUICE_NOT_FOUND',
    'the multipart upload does not exist (any more)',
    'it was aborted or completed by someone else: start over with --new-job',
  ],
  InvalidBucketName: ['SLUICE_USAGE', 'not a valid bucket name'],
  KeyTooLongError: ['SLUICE_USAGE', 'the key is longer than 1,024 bytes'],
  AccessDenied: [
    'SLUICE_ACCESS_DENIED',
    'access denied',
    'the policy has to allow s3:GetObject, s3:PutObject, s3:ListBucket or s3:AbortMultipartUpload, as the case may be',
  ],
  AllAccessDisabled: ['SLUICE_ACCESS_DENIED', 'all access is disabled'],
  AccountProblem: ['SLUICE_ACCESS_DENIED', 'the AWS account has a problem'],
  InvalidObjectState: [
    'SLUICE_ACCESS_DENIED',
    'the object lies in an archive',
    'restore it first (aws s3api restore-object)',
  ],
  MethodNotAllowed: ['SLUICE_ACCESS_DENIED', 'the store does not allow this'],
  InvalidAccessKeyId: ['SLUICE_CREDENTIALS', 'the store does not know this access key', KEY_HINT],
  // versitygw's word for an unknown access key, with status 404.
  XAdminUserNotFound: ['SLUICE_CREDENTIALS', 'the store does not know this access key', KEY_HINT],
  SignatureDoesNotMatch: ['SLUICE_CREDENTIALS', 'the signature does not match: the secret key is wrong', KEY_HINT],
  InvalidSecurity: ['SLUICE_CREDENTIALS', 'the credentials are not valid', KEY_HINT],
  InvalidToken: ['SLUICE_CREDENTIALS', 'the session token is not valid', RENEW_HINT],
  ExpiredToken: ['SLUICE_CREDENTIALS_EXPIRED', 'the session token has expired', RENEW_HINT],
  TokenRefreshRequired: ['SLUICE_CREDENTIALS_EXPIRED', 'the session token has to be renewed', RENEW_HINT],
  RequestTimeTooSkewed: ['SLUICE_CREDENTIALS', 'the store refuses our time', SKEW_HINT],
  SlowDown: ['SLUICE_THROTTLED', 'the store asks us to slow down'],
  ServiceUnavailable: ['SLUICE_THROTTLED', 'the store asks us to slow down'],
  Throttling: ['SLUICE_THROTTLED', 'the store asks us to slow down'],
  ThrottlingException: ['SLUICE_THROTTLED', 'the store asks us to slow down'],
  RequestLimitExceeded: ['SLUICE_THROTTLED', 'the store asks us to slow down'],
  TooManyRequests: ['SLUICE_THROTTLED', 'the store asks us to slow down'],
  BandwidthLimitExceeded: ['SLUICE_THROTTLED', 'the store asks us to slow down'],
  InternalError: ['SLUICE_SERVER', 'the store failed'],
  OperationAborted: ['SLUICE_SERVER', 'the store is busy with a conflicting operation'],
  RequestTimeout: ['SLUICE_NETWORK', 'the store waited too long for our bytes'],
  IncompleteBody: ['SLUICE_NETWORK', 'the store got fewer bytes than announced'],
  BadDigest: ['SLUICE_NETWORK', 'bytes were damaged on the way up'],
  XAmzContentChecksumMismatch: ['SLUICE_NETWORK', 'bytes were damaged on the way up'],
  InvalidPart: ['SLUICE_NOT_FOUND', 'a part of the upload is missing in the store'],
  EntityTooSmall: ['SLUICE_USAGE', 'a part is smaller than the store allows', 'raise --part-size (5 MiB at least)'],
  EntityTooLarge: [
    'SLUICE_USAGE',
    'the object or a part is larger than the store allows',
    'lower --part-size (5 GiB at most)',
  ],
  InsufficientStorage: ['SLUICE_DISK_FULL', 'the store is full', 'free space in the store, then resume'],
  InsufficientCapacity: ['SLUICE_DISK_FULL', 'the store is full', 'free space in the store, then resume'],
  XMinioStorageFull: ['SLUICE_DISK_FULL', 'the store is full', 'free space in the store, then resume'],
  QuotaExceeded: ['SLUICE_DISK_FULL', 'the quota of the bucket is used up', 'free space in the store, then resume'],
  PermanentRedirect: ELSEWHERE,
  TemporaryRedirect: ELSEWHERE,
  Redirect: ELSEWHERE,
  AuthorizationHeaderMalformed: ELSEWHERE,
  IllegalLocationConstraintException: ELSEWHERE,
  NotImplemented: ['SLUICE_PROTOCOL', 'the store does not know this operation'],
}

/** A refusal as a SluiceError: by S3's code, else by the status. The message holds no secret: S3's own text is not passed on where it may quote one. */
export function toS3Error(refusal: S3Refusal): SluiceError {
  const { status, headers, url, purpose } = refusal
  const body = parseErrorBody(refusal.body)
  const condition = conditionFailed(refusal, body)
  const [code, message, hint] = condition ?? ruleOf(status, body, purpose)
  const requestId = body?.requestId ?? headers['x-amz-request-id']
  const name = body !== null && body.code !== '' ? body.code : `status ${status}`
  const details = [name, requestId === undefined ? '' : `request ${requestId}`].filter(Boolean).join(', ')
  return new SluiceError(code, `${message} (${details})`, {
    where: { url },
    hint,
    cause: new S3StatusError(status, body?.code ?? ''),
    retryAfterMs: retryAfterMs(headers['retry-after']),
  })
}

/** The cause of an error that a store answered with: what code inside this store asks for, never shown. */
export class S3StatusError extends Error {
  override readonly name = 'S3StatusError'
  readonly status: number
  readonly s3Code: string

  constructor(status: number, s3Code: string) {
    super(`${status} ${s3Code}`.trim())
    this.status = status
    this.s3Code = s3Code
  }
}

/** Status and S3 code behind an error, where a store answered. */
export function statusOf(error: unknown): { status: number; s3Code: string } | null {
  return error instanceof SluiceError && error.cause instanceof S3StatusError ? error.cause : null
}

function conditionFailed(refusal: S3Refusal, body: S3ErrorBody | null): Rule | null {
  const failed = refusal.status === 412 || body?.code === 'PreconditionFailed'
  const raced = body?.code === 'ConditionalRequestConflict'
  if (!failed && !raced) return null
  if (refusal.purpose === 'read') return ['SLUICE_SOURCE_CHANGED', 'the object changed while it was read']
  return ['SLUICE_EXISTS', raced ? 'another writer made the object in the meantime' : 'the object exists already']
}

function ruleOf(status: number, body: S3ErrorBody | null, purpose: 'read' | 'write'): Rule {
  const known = body === null ? undefined : RULES[body.code]
  if (known !== undefined) return known
  // KMS.DisabledException, KMS.NotFoundException, KMS.KMSInvalidStateException …
  if (body?.code.startsWith('KMS.') === true)
    return ['SLUICE_ACCESS_DENIED', `the KMS key cannot be used: ${body.message.slice(0, 200)}`, KMS_HINT]
  const said = body === null || body.message === '' ? '' : `: ${body.message.slice(0, 200)}`
  if (status === 404) return ['SLUICE_NOT_FOUND', 'the object or the bucket does not exist']
  if (status === 301 || status === 302 || status === 307) return ELSEWHERE
  if (status === 401) return ['SLUICE_CREDENTIALS', 'the store wants credentials', KEY_HINT]
  if (status === 403) return ['SLUICE_ACCESS_DENIED', `access denied${said}`]
  if (status === 408) return ['SLUICE_NETWORK', 'the store waited too long for our bytes']
  if (status === 416) return ['SLUICE_SOURCE_CHANGED', 'the object is shorter than it was']
  if (status === 429 || status === 503) return ['SLUICE_THROTTLED', 'the store asks us to slow down']
  if (status === 507) return ['SLUICE_DISK_FULL', 'the store is full', 'free space in the store, then resume']
  if (status === 409 && purpose === 'write') return ['SLUICE_SERVER', `a conflicting operation is under way${said}`]
  if (status === 501) return ['SLUICE_PROTOCOL', `the store does not know this operation${said}`]
  if (status >= 500) return ['SLUICE_SERVER', `the store failed${said}`]
  return ['SLUICE_PROTOCOL', `the store refuses the request${said}`]
}
