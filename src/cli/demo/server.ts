import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** One file on the web: a server on a free port of 127.0.0.1. */
export interface FileServer {
  readonly url: string
  stop(): Promise<void>
}

/** Serves a file that does not change, with ranges and an ETag, as web servers do. */
export async function serveFile(path: string, name: string): Promise<FileServer> {
  const { size, mtimeMs } = await stat(path)
  const file = { path, size, etag: `"${size.toString(16)}-${Math.round(mtimeMs).toString(16)}"`, url: `/${name}` }
  const server = createServer((request, response) => answer(file, request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/${name}`,
    async stop() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

interface Served {
  readonly path: string
  readonly size: number
  readonly etag: string
  readonly url: string
}

function answer(file: Served, request: IncomingMessage, response: ServerResponse): void {
  if (request.url !== file.url || (request.method !== 'GET' && request.method !== 'HEAD')) {
    response.writeHead(404).end()
    return
  }
  const fresh = request.headers['if-range'] === undefined || request.headers['if-range'] === file.etag
  const [, from, to] = (fresh && /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '')) || []
  const start = Number(from ?? 0)
  const end = to === undefined || to === '' ? file.size : Math.min(file.size, Number(to) + 1)
  if (start >= end) {
    response.writeHead(416, { 'content-range': `bytes */${file.size}` }).end()
    return
  }
  response.writeHead(from === undefined ? 200 : 206, {
    'accept-ranges': 'bytes',
    'content-type': 'application/zip',
    'content-length': end - start,
    etag: file.etag,
    ...(from === undefined ? {} : { 'content-range': `bytes ${start}-${end - 1}/${file.size}` }),
  })
  if (request.method === 'HEAD') {
    response.end()
    return
  }
  const bytes = createReadStream(file.path, { start, end: end - 1 })
  bytes.once('error', () => response.destroy())
  response.once('close', () => bytes.destroy())
  bytes.pipe(response)
}
