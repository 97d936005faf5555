import { SluiceError } from '../../core/errors.ts'
import type { CopyOptions } from '../../core/options.ts'
import type { SinkPlan } from '../../core/ports.ts'
import { endpointName } from './endpoint.ts'
import type { Endpoint } from './endpoint.ts'
import { compressionByName, formatOfName } from './file-format.ts'
import { isPrefix } from './output-name.ts'

/**
 * A pattern says nothing of what its only match is: bytes of one are not put under a name that says they are something else.
 *
 * @throws SLUICE_USAGE
 */
export function requireSameForm({ partitions }: SinkPlan, sink: Endpoint, options: CopyOptions): void {
  const [only] = partitions
  if (only === undefined || isPrefix(sink) || options.sourceFormat === 'raw' || options.sinkFormat === 'raw') return
  const name = endpointName(sink)
  const [from, to] = [formatOfName(only.id), formatOfName(name)]
  if (from === null || to === null) return
  if (from === to && compressionByName(only.id) === compressionByName(name)) return
  throw new SluiceError('SLUICE_USAGE', `the name of ${sink.url} says another form than that of ${only.url}`, {
    where: { url: sink.url },
    hint: `--source-format ${from} writes its rows anew, --sink-format raw copies its bytes as they are`,
  })
}
