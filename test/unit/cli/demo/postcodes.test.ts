import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { crc32, inflateRawSync } from 'node:zlib'
import { fromBuffer, type Entry } from 'yauzl'
import { expect, it } from 'vitest'
import { writePostcodesZip } from '../../../../src/cli/demo/postcodes.ts'
import { serveFile } from '../../../../src/cli/demo/server.ts'

/** What yauzl finds in a zip, and the bytes of its one entry. */
async function unzip(bytes: Buffer): Promise<{ entry: Entry; data: Buffer }> {
  return new Promise((resolve, reject) => {
    fromBuffer(bytes, { lazyEntries: true }, (error, zip) => {
      if (error !== null) return reject(error)
      zip.on('error', reject)
      zip.on('entry', (entry: Entry) => {
        zip.readLocalFileHeader(entry, (failed, head) => {
          if (failed !== null) return reject(failed)
          const start = head.fileDataStart
          resolve({ entry, data: inflateRawSync(bytes.subarray(start, start + entry.compressedSize)) })
        })
      })
      zip.readEntry()
    })
  })
}

it('is a zip of as many rows as asked, each postcode once, the same each time; one in 250 has no place', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-postcodes-'))
  try {
    const [a, b] = [join(folder, 'a.zip'), join(folder, 'b.zip')]
    const size = await writePostcodesZip(a, 20_001)
    await writePostcodesZip(b, 20_001)
    const bytes = readFileSync(a)
    expect(readFileSync(b).equals(bytes)).toBe(true)
    expect(bytes.byteLength).toBe(size)
    const { entry, data } = await unzip(bytes)
    expect(entry).toMatchObject({ fileName: 'ukpostcodes.csv', crc32: crc32(data), uncompressedSize: data.byteLength })
    const [head, ...rows] = data.toString('utf8').trimEnd().split('\n')
    expect(head).toBe('id,postcode,latitude,longitude')
    expect(rows).toHaveLength(20_001)
    expect(new Set(rows.map((row) => row.split(',')[1])).size).toBe(20_001)
    for (const row of rows) expect(row).toMatch(/^\d+,[A-Z]{2}\d+ \d[A-Z]{2},(?:\d\d\.\d{6},-?\d\.\d{6}|,)$/)
    expect(rows.filter((row) => row.endsWith(',,'))).toHaveLength(80)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

it('is served with ranges, an ETag, and nothing beside it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-served-'))
  const path = join(folder, 'a.zip')
  await writePostcodesZip(path, 1000)
  const bytes = readFileSync(path)
  const server = await serveFile(path, 'named.zip')
  const get = async (headers: Record<string, string>, url = server.url): Promise<[Response, Buffer]> => {
    const response = await fetch(url, { headers })
    return [response, Buffer.from(await response.arrayBuffer())]
  }
  try {
    const [whole, all] = await get({})
    const etag = whole.headers.get('etag') ?? ''
    expect(etag).toMatch(/^".+"$/)
    expect(all.equals(bytes)).toBe(true)
    const [part, some] = await get({ range: 'bytes=10-19', 'if-range': etag })
    expect([part.status, part.headers.get('content-range')]).toEqual([206, `bytes 10-19/${bytes.byteLength}`])
    expect(some.equals(bytes.subarray(10, 20))).toBe(true)
    expect((await get({ range: 'bytes=10-19', 'if-range': '"other"' }))[1].byteLength).toBe(bytes.byteLength)
    expect((await get({ range: `bytes=${bytes.byteLength}-` }))[0].status).toBe(416)
    expect((await get({}, `${server.url}/../a.zip`))[0].status).toBe(404)
  } finally {
    await server.stop()
    rmSync(folder, { recursive: true })
  }
})
