import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type DynamoFaults, type DynamoServer, startDynalite, startDynamoFaults } from './dynamodb.ts'

/** dynalite, the proxy before it that makes faults, and a folder of a test's own. */
export interface DynamoPlace {
  readonly server: DynamoServer
  readonly faults: DynamoFaults
  readonly folder: string
  close(): Promise<void>
}

/** `name` is part of the folder's. */
export async function openDynamoPlace(name: string): Promise<DynamoPlace> {
  const server = await startDynalite()
  const faults = await startDynamoFaults(server)
  const folder = mkdtempSync(join(tmpdir(), `sluice-${name}-`))
  return {
    server,
    faults,
    folder,
    async close() {
      await faults.stop()
      await server.stop()
      rmSync(folder, { recursive: true })
    },
  }
}

/** `id,v` with ids from 1. */
export function idRows(count: number): string {
  return `id,v\n${Array.from({ length: count }, (_, i) => `${i + 1},v${i + 1}\n`).join('')}`
}
