import { SluiceError, nullIfMissing } from '../../core/errors.ts'
import type { Abortable, ObjectInfo, Store } from '../../core/ports.ts'
import type { Endpoint } from './endpoint.ts'

/** An object and its name relative to the prefix it was found under: unique in the job. */
export interface Match {
  readonly name: string
  readonly info: ObjectInfo
}

export interface MatchOptions extends Abortable {
  readonly glob: boolean
  readonly warn?: (message: string) => void
  /** Objects are copied as they are: one that is empty is lost where it is left out. */
  readonly asBytes?: boolean | undefined
}

const GLOB = /[*?[{]/

/** Whether the key stands for several objects, should no object of exactly that name be there. */
export function isPattern(key: string, glob: boolean): boolean {
  return key.endsWith('/') || (glob && GLOB.test(key))
}

/**
 * The objects that a source names, in key order: one object; all under a prefix (a name that ends in `/`; folder markers and empty objects
 * skipped); or those that match a glob (`*` stops at `/`, `**` does not). An object of exactly that name beats a glob.
 *
 * @throws SLUICE_NOT_FOUND, SLUICE_NOTHING_MATCHES
 */
export async function matchObjects(store: Store, endpoint: Endpoint, o: MatchOptions): Promise<readonly Match[]> {
  const { key } = endpoint
  if (endpoint.scheme === 'stdio' || endpoint.scheme === 'http' || !isPattern(key, o.glob))
    return [await one(store, key, o)]
  if (!key.endsWith('/')) {
    const exact = await nullIfMissing(one(store, key, o))
    if (exact !== null) return [exact]
  }
  const matches: Match[] = []
  const empty: string[] = []
  for await (const match of listMatches(store, endpoint, o))
    if (match.info.size === 0) empty.push(match.info.url)
    else matches.push(match)
  if (empty.length > 0 && o.asBytes === true)
    o.warn?.(
      `${empty.length === 1 ? 'an empty object is' : `${empty.length} empty objects are`} not copied: ${empty[0] ?? ''}${empty.length === 1 ? '' : ' …'} (named alone, it is)`,
    )
  if (matches.length === 0)
    throw new SluiceError(
      'SLUICE_NOTHING_MATCHES',
      key.endsWith('/')
        ? 'nothing but empty objects, or nothing at all, is under this prefix'
        : 'nothing matches this pattern',
      {
        where: { url: endpoint.url },
      },
    )
  return matches
}

/** Everything under a prefix or glob, empty objects too, as the store lists it. */
export async function* listMatches(store: Store, endpoint: Endpoint, o: MatchOptions): AsyncGenerator<Match> {
  if (store.list === undefined) throw new SluiceError('SLUICE_USAGE', `${endpoint.url} cannot be listed`)
  const { key } = endpoint
  const isGlob = o.glob && GLOB.test(key) && !key.endsWith('/')
  const fixed = isGlob ? key.slice(0, key.search(GLOB)) : key
  const base = isGlob ? fixed.slice(0, fixed.lastIndexOf('/') + 1) : key
  const matches = isGlob
    ? (await import('picomatch')).default(escapeFixed(fixed) + key.slice(fixed.length), { dot: true, nonegate: true })
    : () => true
  const onLeftOut = (left: string): void => {
    if (matches(left)) o.warn?.(`${left} is left out: it is a link to nothing, or no file`)
  }
  for await (const info of store.list(fixed, { ...o, onLeftOut })) {
    if (info.key.endsWith('/') || !matches(info.key)) continue
    yield { name: info.key.slice(base.length), info }
  }
}

async function one(store: Store, key: string, o: Abortable): Promise<Match> {
  const info = await store.head(key, o)
  const path = info.url.split(/[?#]/)[0] ?? info.url
  return { name: path.slice(path.lastIndexOf('/') + 1) || 'data', info }
}

/** What comes before the first wildcard is meant as it is. */
function escapeFixed(text: string): string {
  return text.replaceAll(/[\\()[\]{}!+@|^$*?]/g, String.raw`\$&`)
}
