import { SluiceError, type ErrorCode } from '../../core/errors.ts'
import { retryAfterMs } from '../../aws/http-pool.ts'

/** What a refused request was about. */
export interface DynamoRefusal {
  readonly status: number
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly body: string
  readonly operation: string
  /** For people. */
  readonly url: string
}

type Rule = readonly [code: ErrorCode, message: string, hint?: string]

const KEY_HINT = 'check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the profile'
const RENEW_HINT = 'sign in again or renew the session token, then resume'
const SKEW_HINT = 'the clock of this machine is wrong by more than 5 minutes: set it (timedatectl, ntpd)'
const SLOW_HINT = "raise the table's capacity, or set --write-units, then resume"

const throttled = (message: string): Rule => ['SLUICE_THROTTLED', message, SLOW_HINT]

/** Error names (DynamoDB API Reference, "Common Errors" and "BatchWriteItem"); what is missing here goes by its status. */
const RULES: Readonly<Record<string, Rule>> = {
  ProvisionedThroughputExceededException: throttled("the table's capacity is exceeded"),
  ThrottlingException: throttled('DynamoDB asks us to slow down'),
  ThrottledException: throttled('DynamoDB asks us to slow down'),
  Throttling: throttled('DynamoDB asks us to slow down'),
  RequestThrottled: throttled('DynamoDB asks us to slow down'),
  RequestThrottledException: throttled('DynamoDB asks us to slow down'),
  SlowDown: throttled('DynamoDB asks us to slow down'),
  RequestLimitExceeded: throttled("the account's limit of requests is exceeded"),
  TooManyRequestsException: throttled('DynamoDB asks us to slow down'),
  LimitExceededException: ['SLUICE_THROTTLED', 'too many tables are being made or changed at once', 'try later'],
  InternalServerError: ['SLUICE_SERVER', 'DynamoDB failed'],
  InternalFailure: ['SLUICE_SERVER', 'DynamoDB failed'],
  ServiceUnavailable: ['SLUICE_SERVER', 'DynamoDB is not available'],
  ServiceUnavailableException: ['SLUICE_SERVER', 'DynamoDB is not available'],
  ReplicatedWriteConflictException: ['SLUICE_SERVER', 'another region writes the same item'],
  TransactionInProgressException: ['SLUICE_SERVER', 'a transaction holds the item'],
  TransactionConflictException: ['SLUICE_SERVER', 'a transaction holds the item'],
  RequestTimeout: ['SLUICE_NETWORK', 'the server waited too long for our bytes'],
  RequestTimeoutException: ['SLUICE_NETWORK', 'the server waited too long for our bytes'],
  ResourceNotFoundException: ['SLUICE_NOT_FOUND', 'the table does not exist', 'check table, region and endpoint'],
  TableNotFoundException: ['SLUICE_NOT_FOUND', 'the table does not exist', 'check table, region and endpoint'],
  ResourceInUseException: ['SLUICE_EXISTS', 'the table exists already, or is being changed'],
  TableAlreadyExistsException: ['SLUICE_EXISTS', 'the table exists already'],
  ItemCollectionSizeLimitExceededException: [
    'SLUICE_CONSTRAINT',
    'more than 10 GB with one partition key in a table with local indexes',
  ],
  AccessDeniedException: [
    'SLUICE_ACCESS_DENIED',
    'access denied',
    'the policy has to allow dynamodb:DescribeTable, dynamodb:BatchWriteItem, dynamodb:Scan or dynamodb:CreateTable, as the case may be',
  ],
  AccessDenied: ['SLUICE_ACCESS_DENIED', 'access denied'],
  OptInRequired: ['SLUICE_ACCESS_DENIED', 'the account is not signed up for DynamoDB in this region'],
  UnrecognizedClientException: ['SLUICE_CREDENTIALS', 'the access key or the session token is not valid', KEY_HINT],
  InvalidClientTokenId: ['SLUICE_CREDENTIALS', 'the access key is not valid', KEY_HINT],
  InvalidSignatureException: ['SLUICE_CREDENTIALS', 'the signature does not match: the secret key is wrong', KEY_HINT],
  SignatureDoesNotMatch: ['SLUICE_CREDENTIALS', 'the signature does not match: the secret key is wrong', KEY_HINT],
  IncompleteSignature: ['SLUICE_CREDENTIALS', 'the request is not signed', KEY_HINT],
  IncompleteSignatureException: ['SLUICE_CREDENTIALS', 'the request is not signed', KEY_HINT],
  MissingAuthenticationToken: ['SLUICE_CREDENTIALS', 'DynamoDB wants credentials', KEY_HINT],
  MissingAuthenticationTokenException: ['SLUICE_CREDENTIALS', 'DynamoDB wants credentials', KEY_HINT],
  ExpiredToken: ['SLUICE_CREDENTIALS_EXPIRED', 'the session token has expired', RENEW_HINT],
  ExpiredTokenException: ['SLUICE_CREDENTIALS_EXPIRED', 'the session token has expired', RENEW_HINT],
  UnknownOperationException: ['SLUICE_PROTOCOL', 'the endpoint does not know this operation'],
  SerializationException: ['SLUICE_PROTOCOL', 'the endpoint cannot read the request'],
}

/** Name and text of an error that DynamoDB answered with; the name is empty where the body is none of its own. */
export function parseDynamoError(refusal: Pick<DynamoRefusal, 'body' | 'headers'>): { name: string; message: string } {
  let body: unknown = null
  try {
    body = JSON.parse(refusal.body)
  } catch {
    // A proxy's page: the status has to do.
  }
  const object = typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : {}
  const type = [object['__type'], refusal.headers['x-amzn-errortype'], object['code']].find(
    (text) => typeof text === 'string' && text !== '',
  )
  const text = [object['message'], object['Message']].find((one) => typeof one === 'string')
  return {
    // `com.amazonaws.dynamodb.v20120810#Name`, `Name:http://…`
    name: (typeof type === 'string' ? type : '').replace(/^.*#/, '').replace(/:.*$/, ''),
    message: typeof text === 'string' ? text : '',
  }
}

/** A refusal as a SluiceError: by DynamoDB's name, else by the status. The one place where those names are read. */
export function toDynamoError(refusal: DynamoRefusal): SluiceError {
  const { status, headers, operation, url } = refusal
  const { name, message } = parseDynamoError(refusal)
  const [code, text, hint] = ruleOf(refusal, name, message)
  const details = [operation, name === '' ? `status ${status}` : name, requestOf(headers)].filter(Boolean).join(', ')
  return new SluiceError(code, `${text} (${details})`, {
    where: { url },
    hint,
    cause: new DynamoStatusError(status, name),
    retryAfterMs: retryAfterMs(headers['retry-after']),
  })
}

/** The cause of an error that a server answered with; never shown. */
export class DynamoStatusError extends Error {
  override readonly name = 'DynamoStatusError'
  readonly status: number
  readonly errorName: string

  constructor(status: number, errorName: string) {
    super(`${status} ${errorName}`.trim())
    this.status = status
    this.errorName = errorName
  }
}

/** Whether the server refused the request as a whole: nothing of it was, or will be, done. A broken connection and a 500 leave that open. */
export function wasRefused(error: SluiceError): boolean {
  return error.cause instanceof DynamoStatusError && error.cause.status < 500
}

function requestOf(headers: DynamoRefusal['headers']): string {
  const id = headers['x-amzn-requestid']
  return id === undefined ? '' : `request ${id}`
}

/** Where the message tells what ours cannot: who may not do what, which part of the request is not understood. */
const SAYS_MORE: ReadonlySet<ErrorCode> = new Set(['SLUICE_ACCESS_DENIED', 'SLUICE_PROTOCOL'])

function ruleOf({ status, operation }: DynamoRefusal, name: string, message: string): Rule {
  const said = message === '' ? '' : `: ${message.slice(0, 300)}`
  if (name === 'InvalidSignatureException' && /signature (?:not yet current|expired)/i.test(message))
    return ['SLUICE_CREDENTIALS', 'DynamoDB refuses our time', SKEW_HINT]
  if (name === 'ValidationException')
    return operation === 'BatchWriteItem'
      ? ['SLUICE_VALUE', `DynamoDB refuses an item${said}`, 'mend the row that the message is about']
      : ['SLUICE_USAGE', `DynamoDB refuses the request${said}`, 'check what the message is about']
  if (name === 'LimitExceededException' && /\btables per\b/i.test(message))
    return [
      'SLUICE_USAGE',
      'the account has as many tables as it may have',
      'delete some, or ask AWS to raise the quota',
    ]
  const known = Object.hasOwn(RULES, name) ? RULES[name] : undefined
  if (known !== undefined) {
    const [code, text, ...hint] = known
    return SAYS_MORE.has(code) ? [code, text + said, ...hint] : known
  }
  if (status === 401 || status === 403) return ['SLUICE_ACCESS_DENIED', `access denied${said}`]
  if (status === 408) return ['SLUICE_NETWORK', 'the server waited too long for our bytes']
  if (status === 413) return ['SLUICE_VALUE', 'the request is larger than the server takes']
  if (status === 429) return throttled('DynamoDB asks us to slow down')
  if (status === 503) return ['SLUICE_SERVER', 'DynamoDB is not available']
  if (status >= 500) return ['SLUICE_SERVER', `DynamoDB failed${said}`]
  return ['SLUICE_PROTOCOL', `the endpoint refuses the request${said}`]
}
