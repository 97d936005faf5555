import { SluiceError } from '../../core/errors.ts'
import type { Json, Partition } from '../../core/job.ts'
import type { ObjectInfo } from '../../core/ports.ts'

/** A partition's object and how it is packed, kept in the partition's state. */
interface PartitionState {
  readonly info: ObjectInfo
}

/** An object as a partition's state keeps it. */
export function infoToJson(info: ObjectInfo): Json {
  return { ...info, storageClass: info.storageClass ?? null, contentType: info.contentType ?? null }
}

/** @throws SLUICE_STATE */
export function stateOf(partition: Partition): PartitionState {
  const { state } = partition
  const info = typeof state === 'object' && state !== null && 'info' in state ? state['info'] : undefined
  if (!isInfo(info))
    throw new SluiceError('SLUICE_STATE', `the recorded state of partition ${partition.id} makes no sense`)
  return { info }
}

function isInfo(value: unknown): value is ObjectInfo {
  return (
    typeof value === 'object' &&
    value !== null &&
    'key' in value &&
    typeof value.key === 'string' &&
    'ranged' in value &&
    'etag' in value
  )
}
