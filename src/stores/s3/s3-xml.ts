import { createRequire } from 'node:module'
import type { XMLParser } from 'fast-xml-parser'
import { SluiceError } from '../../core/errors.ts'

type Node = { readonly [name: string]: unknown }

/** Values stay text (an ETag `"12e5"` is no number), blanks stay (keys may begin with one), attributes and namespaces go. */
const PARSING = {
  ignoreAttributes: true,
  removeNSPrefix: true,
  parseTagValue: false,
  trimValues: false,
  // Go's encoder writes an ETag's quotes as &#34;.
  htmlEntities: true,
  isArray: (name: string) => ['Contents', 'Upload', 'Part', 'CommonPrefixes'].includes(name),
}

let loaded: XMLParser | null = null

/** Loading it takes 40 ms, and reading one object needs no XML. */
function xmlParser(): XMLParser {
  if (loaded !== null) return loaded
  const { XMLParser: Parser } = createRequire(import.meta.url)('fast-xml-parser') as typeof import('fast-xml-parser')
  loaded = new Parser(PARSING)
  return loaded
}

/** The root element's name and content. @throws SLUICE_PROTOCOL where it is no XML */
function parseRoot(text: string): { name: string; root: Node } {
  let parsed: unknown
  try {
    parsed = xmlParser().parse(text.trim())
  } catch (error) {
    throw new SluiceError('SLUICE_PROTOCOL', 'the answer is not XML', { cause: error })
  }
  const names = isNode(parsed) ? Object.keys(parsed).filter((name) => !name.startsWith('?')) : []
  const name = names[0]
  if (!isNode(parsed) || name === undefined) {
    throw new SluiceError('SLUICE_PROTOCOL', `the answer is not XML: ${JSON.stringify(text.slice(0, 80))}`)
  }
  const root = parsed[name]
  return { name, root: isNode(root) ? root : {} }
}

/** The content of an answer whose root must have this name. @throws SLUICE_PROTOCOL */
function parseAnswer(text: string, wanted: string): Node {
  const { name, root } = parseRoot(text)
  if (name !== wanted)
    throw new SluiceError('SLUICE_PROTOCOL', `the answer is <${name}> where <${wanted}> was expected`)
  return root
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null
}

function text(node: Node, name: string): string | undefined {
  const value = node[name]
  return typeof value === 'string' ? value : undefined
}

function nodes(node: Node, name: string): Node[] {
  const value = node[name]
  return Array.isArray(value) ? value.filter(isNode) : []
}

export interface S3ErrorBody {
  readonly code: string
  readonly message: string
  readonly region: string | undefined
  readonly requestId: string | undefined
}

/** An error body, or null where the text is none (HTML of a proxy, nothing at all, a result). */
export function parseErrorBody(body: string): S3ErrorBody | null {
  if (!body.includes('<Error')) return null
  try {
    const { name, root } = parseRoot(body)
    if (name !== 'Error') return null
    return {
      code: text(root, 'Code')?.trim() ?? '',
      message: text(root, 'Message')?.trim() ?? '',
      region: text(root, 'Region')?.trim(),
      requestId: text(root, 'RequestId')?.trim(),
    }
  } catch {
    return null
  }
}

export interface ListedObject {
  readonly key: string
  readonly size: number
  readonly etag: string | null
  readonly modifiedMs: number | null
  readonly storageClass: string | undefined
}

export interface ListPage {
  readonly objects: readonly ListedObject[]
  /** What the next page is asked for with; null at the end. */
  readonly next: string | null
}

/** ListObjectsV2. */
export function parseListPage(body: string): ListPage {
  const root = parseAnswer(body, 'ListBucketResult')
  const decode = decoderOf(root)
  const objects = nodes(root, 'Contents').map((one) => ({
    key: decode(text(one, 'Key') ?? ''),
    size: Number(text(one, 'Size') ?? 0),
    etag: text(one, 'ETag') ?? null,
    modifiedMs: timeOf(text(one, 'LastModified')),
    storageClass: text(one, 'StorageClass'),
  }))
  const token = text(root, 'NextContinuationToken') ?? ''
  return { objects, next: text(root, 'IsTruncated') === 'true' && token !== '' ? token : null }
}

/** CreateMultipartUpload: the upload id. */
export function parseCreated(body: string): string {
  const id = text(parseAnswer(body, 'InitiateMultipartUploadResult'), 'UploadId') ?? ''
  if (id === '') throw new SluiceError('SLUICE_PROTOCOL', 'CreateMultipartUpload was answered without an upload id')
  return id
}

export interface ListedUpload {
  readonly key: string
  readonly uploadId: string
  readonly initiatedMs: number | null
}

export interface UploadPage {
  readonly uploads: readonly ListedUpload[]
  readonly next: { readonly keyMarker: string; readonly uploadIdMarker: string } | null
}

/** ListMultipartUploads. */
export function parseUploadPage(body: string): UploadPage {
  const root = parseAnswer(body, 'ListMultipartUploadsResult')
  const decode = decoderOf(root)
  const uploads = nodes(root, 'Upload').map((one) => ({
    key: decode(text(one, 'Key') ?? ''),
    uploadId: text(one, 'UploadId') ?? '',
    initiatedMs: timeOf(text(one, 'Initiated')),
  }))
  const keyMarker = decode(text(root, 'NextKeyMarker') ?? '')
  const more = text(root, 'IsTruncated') === 'true' && keyMarker !== ''
  return { uploads, next: more ? { keyMarker, uploadIdMarker: text(root, 'NextUploadIdMarker') ?? '' } : null }
}

export interface ListedPart {
  readonly number: number
  readonly bytes: number
  readonly etag: string
  readonly crc32: string | undefined
}

export interface PartPage {
  readonly parts: readonly ListedPart[]
  readonly next: string | null
}

/** ListParts. */
export function parsePartPage(body: string): PartPage {
  const root = parseAnswer(body, 'ListPartsResult')
  const parts = nodes(root, 'Part').map((one) => ({
    number: Number(text(one, 'PartNumber') ?? 0),
    bytes: Number(text(one, 'Size') ?? 0),
    etag: text(one, 'ETag') ?? '',
    crc32: text(one, 'ChecksumCRC32'),
  }))
  const marker = text(root, 'NextPartNumberMarker') ?? ''
  return { parts, next: text(root, 'IsTruncated') === 'true' && marker !== '' ? marker : null }
}

/** CompleteMultipartUpload: the object's ETag. */
export function parseCompleted(body: string): string | null {
  return text(parseAnswer(body, 'CompleteMultipartUploadResult'), 'ETag') ?? null
}

/** The body of CompleteMultipartUpload. Parts ascend. */
export function completeXml(parts: readonly { number: number; etag: string; crc32: string | undefined }[]): string {
  const each = parts.map(({ number, etag, crc32 }) => {
    const checksum = crc32 === undefined ? '' : `<ChecksumCRC32>${crc32}</ChecksumCRC32>`
    return `<Part><PartNumber>${number}</PartNumber><ETag>${escapeXml(etag)}</ETag>${checksum}</Part>`
  })
  return `<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${each.join('')}</CompleteMultipartUpload>`
}

function escapeXml(value: string): string {
  return value.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;').replace(/"/g, '&quot;')
}

/** With `encoding-type=url` keys come percent-encoded and a blank as `+` (seen at AWS and versitygw); a store that ignores it says nothing. */
function decoderOf(root: Node): (key: string) => string {
  if (text(root, 'EncodingType')?.toLowerCase() !== 'url') return (key) => key
  return (key) => {
    try {
      return decodeURIComponent(key.replaceAll('+', ' '))
    } catch (error) {
      throw new SluiceError('SLUICE_PROTOCOL', `a key in a listing is wrongly encoded: ${key}`, { cause: error })
    }
  }
}

function timeOf(value: string | undefined): number | null {
  const ms = value === undefined ? Number.NaN : Date.parse(value)
  return Number.isNaN(ms) ? null : ms
}
