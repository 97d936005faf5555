import { createHttpPool } from '../aws/http-pool.ts'
import type { Reporter, Store } from '../core/ports.ts'
import { createHttpRequests } from './http/http-requests.ts'
import { headHttp } from './http/head.ts'
import { readHttp } from './http/read.ts'

export interface HttpStoreOptions {
  /** How long a request, or a read, goes on without progress before its error is final; milliseconds. */
  readonly retryForMs: number
  readonly reporter: Reporter
  /** Connections to one server; default 64. */
  readonly maxConnections?: number | undefined
  /** Time without a byte that counts as a stall; default 30,000 ms. */
  readonly stallTimeoutMs?: number | undefined
}

/**
 * Files of HTTP servers; a key is a URL (whose user and password are sent as Basic authentication, and never shown). Redirects are followed,
 * ranges used where they work, reads pinned to a strong ETag, else to date and size. Content codings are never undone here: none is
 * asked for, and one that comes nevertheless is part of the pin.
 */
export function createHttpStore(options: HttpStoreOptions): Store {
  const pool = createHttpPool({ maxConnections: options.maxConnections, stallTimeoutMs: options.stallTimeoutMs })
  const context = {
    requests: createHttpRequests(pool),
    retryForMs: options.retryForMs,
    reporter: options.reporter,
    taken: new Set<string>(),
  }
  return {
    head: (key, o) => headHttp(context, key, o),
    read: (info, range, o) => readHttp(context, { info, range }, o),
    close: () => pool.close(),
  }
}
