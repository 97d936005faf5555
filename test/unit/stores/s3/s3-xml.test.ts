import { describe, expect, it } from 'vitest'
import {
  completeXml,
  parseCompleted,
  parseCreated,
  parseErrorBody,
  parseListPage,
  parsePartPage,
  parseUploadPage,
} from '../../../../src/stores/s3/s3-xml.ts'

const NS = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'

describe('parseListPage', () => {
  it('reads keys, url-encoded, and the next page', () => {
    const page = parseListPage(`<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult ${NS}><Name>b</Name><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>
<NextContinuationToken>to/ken=</NextContinuationToken>
<Contents><Key>a+b%2Bc/100%25/%C3%BC</Key><LastModified>2026-01-02T03:04:05.000Z</LastModified><ETag>&quot;0012e5&quot;</ETag><Size>12</Size><StorageClass>GLACIER</StorageClass></Contents>
<Contents><Key>0123</Key><ETag>&#34;x-2&#34;</ETag><Size>0</Size></Contents></ListBucketResult>`)
    expect(page.next).toBe('to/ken=')
    expect(page.objects).toEqual([
      {
        key: 'a b+c/100%/ü',
        size: 12,
        etag: '"0012e5"',
        modifiedMs: Date.UTC(2026, 0, 2, 3, 4, 5),
        storageClass: 'GLACIER',
      },
      { key: '0123', size: 0, etag: '"x-2"', modifiedMs: null, storageClass: undefined },
    ])
  })

  it('takes keys as they are where the store encodes nothing, blanks at the ends too', () => {
    const page = parseListPage(
      `<ListBucketResult ${NS}><Contents><Key> a+b%20 &amp;&lt;</Key><Size>1</Size></Contents></ListBucketResult>`,
    )
    expect(page).toMatchObject({ next: null, objects: [{ key: ' a+b%20 &<', etag: null }] })
  })

  it('reads an empty listing', () => {
    expect(parseListPage(`<ListBucketResult ${NS}><IsTruncated>false</IsTruncated></ListBucketResult>`)).toEqual({
      objects: [],
      next: null,
    })
    expect(parseListPage(`<ListBucketResult/>`)).toEqual({ objects: [], next: null })
  })

  it.each([
    '',
    'plain text',
    '<html><body>hello</body></html>',
    '{"a":1}',
    '<ListBucketResult',
    `<ListBucketResult><EncodingType>url</EncodingType><Contents><Key>%zz</Key></Contents></ListBucketResult>`,
  ])('refuses %j', (text) => {
    expect(() => parseListPage(text)).toThrow(expect.objectContaining({ code: 'SLUICE_PROTOCOL' }))
  })
})

describe('multipart answers', () => {
  it('reads an upload id', () => {
    expect(
      parseCreated(`<InitiateMultipartUploadResult ${NS}><UploadId>0042</UploadId></InitiateMultipartUploadResult>`),
    ).toBe('0042')
    expect(() => parseCreated('<InitiateMultipartUploadResult/>')).toThrow(
      expect.objectContaining({ code: 'SLUICE_PROTOCOL' }),
    )
  })

  it('reads uploads and the markers of the next page', () => {
    const text = `<ListMultipartUploadsResult ${NS}><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated><NextKeyMarker>a+b</NextKeyMarker><NextUploadIdMarker>u2</NextUploadIdMarker>
<Upload><Key>a+b</Key><UploadId>u1</UploadId><Initiated>2026-01-02T03:04:05Z</Initiated></Upload></ListMultipartUploadsResult>`
    expect(parseUploadPage(text)).toEqual({
      uploads: [{ key: 'a b', uploadId: 'u1', initiatedMs: Date.UTC(2026, 0, 2, 3, 4, 5) }],
      next: { keyMarker: 'a b', uploadIdMarker: 'u2' },
    })
  })

  it('reads parts', () => {
    const text = `<ListPartsResult><IsTruncated>true</IsTruncated><NextPartNumberMarker>1000</NextPartNumberMarker><Part><PartNumber>1000</PartNumber><ETag>"e"</ETag><Size>5242880</Size><ChecksumCRC32>AAAAAA==</ChecksumCRC32></Part></ListPartsResult>`
    expect(parsePartPage(text)).toEqual({
      parts: [{ number: 1000, bytes: 5_242_880, etag: '"e"', crc32: 'AAAAAA==' }],
      next: '1000',
    })
  })

  it('writes and reads Complete', () => {
    expect(
      completeXml([
        { number: 1, etag: '"a&b"', crc32: undefined },
        { number: 2, etag: '"c"', crc32: 'AQ==' },
      ]),
    ).toBe(
      `<CompleteMultipartUpload ${NS}><Part><PartNumber>1</PartNumber><ETag>&quot;a&amp;b&quot;</ETag></Part>` +
        `<Part><PartNumber>2</PartNumber><ETag>&quot;c&quot;</ETag><ChecksumCRC32>AQ==</ChecksumCRC32></Part></CompleteMultipartUpload>`,
    )
    // S3 sends blanks while it works, before the XML's declaration.
    expect(
      parseCompleted(
        `  \n <?xml version="1.0"?>\n<CompleteMultipartUploadResult><ETag>"d-2"</ETag></CompleteMultipartUploadResult>`,
      ),
    ).toBe('"d-2"')
  })
})

describe('parseErrorBody', () => {
  it('reads code, message, region', () => {
    const text = `<?xml version="1.0"?><Error><Code>AuthorizationHeaderMalformed</Code><Message>the region 'a' is wrong; expecting 'eu-west-1'</Message><Region>eu-west-1</Region><RequestId>R1</RequestId></Error>`
    expect(parseErrorBody(text)).toEqual({
      code: 'AuthorizationHeaderMalformed',
      message: "the region 'a' is wrong; expecting 'eu-west-1'",
      region: 'eu-west-1',
      requestId: 'R1',
    })
  })

  it.each(['', '<html>Error</html>', '<Errors><Error/></Errors>', '<ListBucketResult/>', '<Error'])(
    'sees none in %j',
    (text) => {
      expect(parseErrorBody(text)).toBeNull()
    },
  )
})
