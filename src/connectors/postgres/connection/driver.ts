import { createRequire } from 'node:module'
import type Driver from 'pg'

/**
 * Loads pg. It asks on loading whether it runs in a Cloudflare Worker: by `navigator`, and where Node has none (before 21) by making a
 * `Response`, for which Node compiles all of undici: half of the 60 ms that loading took. So it finds a navigator, for just as long.
 */
function loadPg(): typeof Driver {
  const require = createRequire(import.meta.url)
  const { navigator } = globalThis as { navigator?: unknown }
  if (navigator !== undefined) return require('pg') as typeof Driver
  Object.defineProperty(globalThis, 'navigator', { value: { userAgent: 'Node.js' }, configurable: true })
  try {
    return require('pg') as typeof Driver
  } finally {
    Reflect.deleteProperty(globalThis, 'navigator')
  }
}

export const pg = loadPg()
