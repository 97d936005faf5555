import { SluiceError } from '../../core/errors.ts'
import type { Store } from '../../core/ports.ts'
import type { EndpointRequest } from '../connector.ts'
import { withoutLists } from './beside-data.ts'
import { endpointName } from './endpoint.ts'
import type { Endpoint } from './endpoint.ts'
import { formatOfName } from './file-format.ts'
import { isPattern, matchObjects } from './match.ts'
import type { Match } from './match.ts'

/** The objects, where they are Parquet: then rows are read by ranges, row group by row group. Null where they are not. */
export async function parquetMatches(
  request: EndpointRequest,
  { store, endpoint }: { store: Store; endpoint: Endpoint },
): Promise<readonly Match[] | null> {
  const { sourceFormat, glob } = request.options
  const isParquet = (key: string): boolean =>
    (sourceFormat ?? formatOfName(endpointName({ ...endpoint, key }))) === 'parquet'
  const many = endpoint.scheme !== 'http' && endpoint.scheme !== 'stdio' && isPattern(endpoint.key, glob !== false)
  if (!many && !isParquet(endpoint.key)) return null
  if (many && sourceFormat !== undefined && sourceFormat !== 'parquet') return null
  const { signal, reporter } = request
  const warn = (message: string): void => reporter.warn(message)
  const found = await matchObjects(store, endpoint, { signal, glob: glob !== false, warn })
  if (!found.some(({ info }) => isParquet(endpoint.scheme === 'http' ? endpoint.key : info.key))) return null
  const matches = await withoutLists(found, { signal, store, warn })
  const keyOf = ({ info }: Match): string => (endpoint.scheme === 'http' ? endpoint.key : info.key)
  const other = matches.find((match) => !isParquet(keyOf(match)))
  if (other === undefined) return matches
  throw new SluiceError('SLUICE_USAGE', `${other.info.url} is no Parquet, as other files here are`, {
    hint: 'choose one kind by a glob, as in s3://bucket/prefix/*.parquet',
  })
}
