import type { HttpPool, HttpResponse } from '../../aws/http-pool.ts'
import { SluiceError } from '../../core/errors.ts'
import { redactUrl } from '../../core/redact.ts'
import { statusError } from './status.ts'
import { parseTarget, redirected, type Target } from './target.ts'

const MOST_REDIRECTS = 10
const REDIRECTS = new Set([301, 302, 303, 307, 308])

export interface GetOptions {
  readonly method?: 'GET' | 'HEAD'
  readonly headers: Readonly<Record<string, string>>
  readonly signal: AbortSignal
  /** Statuses of errors that come back as answers. */
  readonly taken?: readonly number[] | undefined
}

/** Single requests, without retries: redirects followed and their goal kept, errors translated. */
export interface HttpRequests {
  /**
   * The answer with its body unread. Statuses of 400 and more are thrown, but for 416 and those of `taken`; so is a redirect that cannot be followed.
   *
   * @throws SLUICE_UNREACHABLE, not retryable where the server has never answered, and what statusError and translateNetworkError know
   */
  send(key: string, o: GetOptions): Promise<HttpResponse>
}

/** Keeps the last redirect's goal for each key that it was asked for. */
export function createHttpRequests(pool: HttpPool): HttpRequests {
  const goals = new Map<string, Target>()

  async function ask(key: string, start: Target, o: GetOptions): Promise<HttpResponse> {
    const { response, target } = await follow(pool, { key, start }, o)
    if (response.status < 400) goals.set(key, target)
    return response
  }

  return {
    async send(key, o) {
      const goal = goals.get(key)
      let response = await ask(key, goal ?? parseTarget(key), o)
      if (goal !== undefined && [401, 403, 404, 410].includes(response.status)) {
        // A signed goal expires: the server that redirected us makes a new one. The pin tells whether it is the same file.
        await response.body.discard()
        goals.delete(key)
        response = await ask(key, parseTarget(key), o)
      }
      if (response.status >= 400 && ![416, ...(o.taken ?? [])].includes(response.status)) {
        await response.body.discard()
        throw statusError(response.status, response.headers, redactUrl(key))
      }
      return response
    },
  }
}

/** Up to ten redirects. */
async function follow(
  pool: HttpPool,
  from: { key: string; start: Target },
  o: GetOptions,
): Promise<{ response: HttpResponse; target: Target }> {
  const shownUrl = redactUrl(from.key)
  let target = from.start
  for (let hop = 0; hop <= MOST_REDIRECTS; hop += 1) {
    const response = await requestOnce(pool, target, o)
    if (!REDIRECTS.has(response.status)) return { response, target }
    await response.body.discard()
    target = redirected(target, response.headers.location, shownUrl)
  }
  throw new SluiceError('SLUICE_PROTOCOL', `the server redirects more than ${MOST_REDIRECTS} times`, {
    where: { url: shownUrl },
    hint: 'check the URL: the redirects may lead in a circle',
  })
}

async function requestOnce(pool: HttpPool, target: Target, o: GetOptions): Promise<HttpResponse> {
  const { authorization, url } = target
  const headers = { 'accept-encoding': 'identity', accept: '*/*', 'user-agent': 'sluice', ...o.headers }
  try {
    return await pool.request({
      method: o.method ?? 'GET',
      origin: url.origin,
      path: url.pathname + url.search,
      headers: authorization === null ? headers : { ...headers, authorization },
      signal: o.signal,
      label: redactUrl(url.href),
    })
  } catch (error) {
    if (!(error instanceof SluiceError) || error.code !== 'SLUICE_UNREACHABLE' || pool.hasAnswered(url.origin))
      throw error
    // Nothing has ever answered there: more likely a wrong address than an outage, and to be told at once.
    const { code, message, where, hint, cause } = error
    throw new SluiceError(code, message, { where, hint, cause, retryable: false })
  }
}
