import { SluiceError } from '../../core/errors.ts'
import { redactUrl } from '../../core/redact.ts'

/** Where a request goes, and as whom. */
export interface Target {
  /** Without user and password. */
  readonly url: URL
  readonly authorization: string | null
}

/** @throws SLUICE_USAGE */
export function parseTarget(text: string): Target {
  const url = parseUrl(text)
  if (url === null || !isHttp(url)) {
    throw new SluiceError('SLUICE_USAGE', 'this is no http or https URL', { where: { url: redactUrl(text) } })
  }
  return targetOf(url)
}

/**
 * Where a redirect leads. Credentials go along within the same origin only, as browsers and curl have it.
 *
 * @throws SLUICE_USAGE where it leads from https to http; SLUICE_PROTOCOL where it leads nowhere
 */
export function redirected(from: Target, location: string | undefined, shownUrl: string): Target {
  const where = { url: shownUrl }
  const url = location === undefined ? null : parseUrl(location, from.url)
  if (url === null || !isHttp(url)) {
    const goal =
      location === undefined ? 'without saying where to' : `to what is no http or https URL (${shown(url, location)})`
    throw new SluiceError('SLUICE_PROTOCOL', `the server redirects ${goal}`, { where })
  }
  if (from.url.protocol === 'https:' && url.protocol === 'http:') {
    throw new SluiceError(
      'SLUICE_USAGE',
      `the server redirects from https to plain http (${redactUrl(url.origin)}), which is not followed`,
      {
        where,
        hint: 'anyone on the way could read and change it; name the http address itself if that is what you want',
      },
    )
  }
  const target = targetOf(url)
  if (target.authorization !== null || url.origin !== from.url.origin) return target
  return { ...target, authorization: from.authorization }
}

/** A goal of a redirect for people: its scheme and host, since the rest may hold a secret. */
function shown(url: URL | null, location: string): string {
  return url === null ? (/^[a-z]+:\/{0,2}/i.exec(location)?.[0] ?? 'no URL') : `${url.protocol}//${url.host}`
}

function targetOf(from: URL): Target {
  const url = new URL(from)
  const { username, password } = url
  url.username = ''
  url.password = ''
  url.hash = ''
  const authorization =
    username === '' && password === ''
      ? null
      : `Basic ${Buffer.from(`${decoded(username)}:${decoded(password)}`).toString('base64')}`
  return { url, authorization }
}

function parseUrl(text: string, base?: URL): URL | null {
  try {
    return new URL(text, base)
  } catch {
    return null
  }
}

function isHttp(url: URL): boolean {
  return url.protocol === 'http:' || url.protocol === 'https:'
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
