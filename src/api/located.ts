import { join } from 'node:path'
import type { CopyOptions } from '../core/options.ts'

/** A path as seen from `folder`; URLs, absolute paths and `-` are the same from everywhere. */
export function seenFrom(url: string, folder: string): string {
  if (url === '' || url === '-' || url.startsWith('/') || /^[a-z][a-z0-9+.-]*:\/\//i.test(url)) return url
  return join(folder, url)
}

interface Ends {
  readonly source: string
  readonly sink: string
  readonly options: CopyOptions
}

/** What a job that was begun in `folder` reads and writes, for who goes on with it in `here`; as it was typed where that is the same. */
export function seenFromHere(job: Ends & { readonly folder?: string | undefined }, here: string): Ends {
  const { source, sink, options, folder = here } = job
  if (folder === here) return { source, sink, options }
  const { manifest } = options
  return {
    source: seenFrom(source, folder),
    sink: seenFrom(sink, folder),
    options: manifest === undefined ? options : { ...options, manifest: seenFrom(manifest, folder) },
  }
}
