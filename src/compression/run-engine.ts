import type { Transform } from 'node:stream'

/** A zlib stream: `bytesWritten` counts the input that it consumed, not what it was given. */
export interface Engine extends Transform {
  readonly bytesWritten: number
}

/** Where an engine's input comes from. */
export interface EngineInput {
  /** The next input, null at its end. */
  next(): Promise<Uint8Array | null>
  /** Takes back input that lies behind the engine's own end. */
  unread(rest: Uint8Array): void
}

/** Output of one step of an engine, in bytes. */
export const ENGINE_CHUNK_BYTES = 256 * 1024

/**
 * Runs a decompressing engine over its input until the engine or the input ends. Pulling, decompressing (in libuv's pool) and the
 * consumer's own work overlap; held at a time are one input chunk and two output chunks of ENGINE_CHUNK_BYTES. The engine is destroyed at the end, however that comes.
 */
export async function* runEngine(engine: Engine, input: EngineInput): AsyncGenerator<Uint8Array, void, undefined> {
  const feeder = startFeeding(engine, input)
  try {
    for await (const output of engine as AsyncIterable<Uint8Array>) yield output
  } finally {
    engine.destroy()
    await feeder.stop()
  }
}

function startFeeding(engine: Engine, input: EngineInput): { stop(): Promise<void> } {
  let pulling = false
  let wake: (() => void) | null = null
  engine.once('close', () => wake?.())

  /** Resolves when the chunk is processed, or the engine is gone. */
  const write = (chunk: Uint8Array) =>
    new Promise<void>((resolve) => {
      wake = resolve
      if (engine.destroyed) resolve()
      else engine.write(chunk, () => resolve())
    })
  const pull = async (): Promise<Uint8Array | null> => {
    pulling = true
    try {
      return await input.next()
    } finally {
      pulling = false
    }
  }
  const feed = async (): Promise<void> => {
    let fed = 0
    for (;;) {
      const chunk = await pull()
      if (engine.destroyed) return
      if (chunk === null) {
        engine.end()
        return
      }
      fed += chunk.byteLength
      await write(chunk)
      const surplus = fed - engine.bytesWritten
      if (surplus === 0) continue
      // Either the compressed stream ended inside this chunk, or the engine broke: the reader of its output sees which.
      if (surplus <= chunk.byteLength) input.unread(chunk.subarray(chunk.byteLength - surplus))
      return
    }
  }
  const feeding = feed().catch((error: unknown) => {
    engine.destroy(error instanceof Error ? error : new Error(String(error)))
  })
  return {
    // A pull that hangs is not waited for: its source ends by the signal.
    stop: async () => {
      if (!pulling) await feeding
    },
  }
}
