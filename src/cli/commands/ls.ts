import { list, type ObjectInfo } from '../../index.ts'
import type { RunCommand } from '../context.ts'
import { printable } from '../table.ts'
import { formatBytes } from '../units.ts'

/** `sluice ls URL`: a line an object, as the listing comes; nothing is held back. */
export const run: RunCommand = async (context) => {
  const { operands, options, own, env, interruption, print } = context
  const [url = ''] = operands
  for await (const object of list(url, { options, env, signal: interruption.signal })) {
    await print(`${own.json === true ? JSON.stringify(jsonOf(object)) : renderObject(object)}\n`)
  }
  return 0
}

/** Size, time (UTC), storage class where there is one, URL. */
export function renderObject(object: ObjectInfo): string {
  const size = (object.size === null ? '?' : formatBytes(object.size)).padStart(10)
  const time =
    object.modifiedMs === null ? ' '.repeat(20) : `${new Date(object.modifiedMs).toISOString().slice(0, 19)}Z`
  const storageClass = object.storageClass === undefined ? '' : `${object.storageClass}  `
  return `${size}  ${time}  ${storageClass}${printable(object.url)}`
}

function jsonOf(object: ObjectInfo): object {
  return {
    url: object.url,
    bytes: object.size,
    modified: object.modifiedMs === null ? null : new Date(object.modifiedMs).toISOString(),
    etag: object.etag,
    storageClass: object.storageClass ?? null,
  }
}
