import { describe, expect, it } from 'vitest'
import { PartGate } from '../../../../src/connectors/file/part-gate.ts'

const MIB = 1024 * 1024
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Parts whose ends are in the test's hand. */
function parts(gate: PartGate) {
  const begun: number[] = []
  const ends = new Map<number, (error?: Error) => void>()
  const resolved: number[] = []
  const failed: unknown[] = []
  const send = async (id: number, bytes: number): Promise<void> => {
    const task = (): Promise<void> => {
      begun.push(id)
      return new Promise((resolve, reject) =>
        ends.set(id, (error) => (error === undefined ? resolve() : reject(error))),
      )
    }
    await gate.send(task, bytes).then(
      () => resolved.push(id),
      (error: unknown) => failed.push(error),
    )
  }
  return { begun, ends, resolved, failed, send }
}

describe('PartGate', () => {
  it('lets so many parts be in flight, 16 MiB wait beside production, and production with what is more', async () => {
    const { begun, ends, resolved, send } = parts(new PartGate(2))
    for (let id = 1; id <= 6; id += 1) void send(id, 7 * MIB)
    await turn()
    expect({ begun, resolved }).toEqual({ begun: [1, 2], resolved: [1, 2, 3, 4] })
    ends.get(2)?.()
    await turn()
    expect({ begun, resolved }).toEqual({ begun: [1, 2, 3], resolved: [1, 2, 3, 4, 5] })
    for (const id of [1, 3]) ends.get(id)?.()
    await turn()
    expect({ begun, resolved }).toEqual({ begun: [1, 2, 3, 4, 5], resolved: [1, 2, 3, 4, 5, 6] })
  })

  it('lets no more than an eighth of --max-memory wait beside production', async () => {
    const { begun, resolved, send } = parts(new PartGate(1, 64 * MIB))
    for (let id = 1; id <= 4; id += 1) void send(id, 5 * MIB)
    await turn()
    expect({ begun, resolved }).toEqual({ begun: [1], resolved: [1, 2] })
  })

  it('production waits with a part that is larger than what may wait', async () => {
    const { begun, ends, resolved, send } = parts(new PartGate(1))
    for (const id of [1, 2]) void send(id, 17 * MIB)
    await turn()
    expect({ begun, resolved }).toEqual({ begun: [1], resolved: [1] })
    ends.get(1)?.()
    await turn()
    expect({ begun, resolved }).toEqual({ begun: [1, 2], resolved: [1, 2] })
  })

  it('of no parallelism is passed when the part is through', async () => {
    const { begun, ends, resolved, send } = parts(new PartGate(0))
    for (const id of [1, 2]) void send(id, 1)
    await turn()
    expect({ begun, resolved }).toEqual({ begun: [1], resolved: [] })
    ends.get(1)?.()
    await turn()
    expect({ begun, resolved }).toEqual({ begun: [1, 2], resolved: [1] })
  })

  it('is settled when what waits is through, too', async () => {
    const gate = new PartGate(1)
    const { ends, send } = parts(gate)
    for (const id of [1, 2]) void send(id, 1)
    await turn()
    let settled = false
    void gate.settled().then(() => (settled = true))
    ends.get(1)?.()
    await turn()
    expect(settled).toBe(false)
    ends.get(2)?.()
    await turn()
    expect(settled).toBe(true)
  })

  it('tells of a failure whoever comes next, and begins nothing that waited', async () => {
    const gate = new PartGate(1)
    const { begun, ends, failed, send } = parts(gate)
    for (const id of [1, 2, 3]) void send(id, 10 * MIB)
    await turn()
    const error = new Error('no')
    ends.get(1)?.(error)
    await gate.settled()
    await send(4, 1)
    expect({ begun, failed }).toEqual({ begun: [1], failed: [error, error] })
    expect(() => gate.throwFailure()).toThrow(error)
  })
})
