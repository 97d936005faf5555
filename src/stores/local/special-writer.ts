import { constants, open as openCallback, write as writeCallback, close as closeCallback } from 'node:fs'
import { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { SluiceError } from '../../core/errors.ts'
import type { Json } from '../../core/job.ts'
import type { Abortable, ObjectInfo, ObjectWriter, WrittenPart } from '../../core/ports.ts'
import { localErrorCode, translateLocalError } from './local-error.ts'

/** How often a FIFO without a reader is tried again. */
const READER_POLL_MS = 50

/** Something to which bytes go in order. */
interface Outlet {
  write(bytes: readonly Uint8Array[]): Promise<void>
  close(): Promise<void>
  /** At once, whatever is under way. */
  destroy(): void
}

/**
 * Writes in place, in order, to what is no regular file: a FIFO (waits for its reader), a device, `/dev/stdout`. There is nothing to
 * hide until it is complete, and nothing that an abort could take back. A part waits until all before it are written.
 *
 * @throws SLUICE_LOCAL_IO, also where the reader of a FIFO went away
 */
export async function openSpecialWriter(key: string, fifo: boolean, o: Abortable): Promise<ObjectWriter> {
  const outlet = fifo ? await openFifo(key, o) : await openInPlace(key)
  return new SpecialWriter(key, outlet)
}

class SpecialWriter implements ObjectWriter {
  readonly present: readonly WrittenPart[] = []
  readonly #key: string
  readonly #outlet: Outlet
  /** Parts that came before their turn, by offset; as many as the caller writes at the same time. */
  readonly #waiting = new Map<number, () => void>()
  #offset = 0
  #failure: unknown = null
  #closed: Promise<void> | null = null

  constructor(key: string, outlet: Outlet) {
    this.#key = key
    this.#outlet = outlet
  }

  token(): Json {
    return null
  }

  async writePart(
    part: { number: number; offset: number; bytes: readonly Uint8Array[] },
    o: Abortable,
  ): Promise<WrittenPart> {
    if (part.offset > this.#offset) await this.#turn(part.offset, o.signal)
    o.signal.throwIfAborted()
    if (this.#failure !== null) throw this.#failure
    if (part.offset !== this.#offset) {
      throw new SluiceError('SLUICE_NOT_REPLAYABLE', 'what was written already cannot be replaced', {
        where: { url: this.#key, byte: part.offset },
      })
    }
    const bytes = part.bytes.reduce((sum, chunk) => sum + chunk.byteLength, 0)
    const onAbort = (): void => this.#outlet.destroy()
    o.signal.addEventListener('abort', onAbort, { once: true })
    try {
      await this.#outlet.write(part.bytes)
    } catch (error) {
      this.#failure = o.signal.aborted ? o.signal.reason : translateLocalError(error, this.#key, part.offset)
      for (const wake of this.#waiting.values()) wake()
      throw this.#failure
    } finally {
      o.signal.removeEventListener('abort', onAbort)
    }
    this.#offset += bytes
    this.#waiting.get(this.#offset)?.()
    return { number: part.number, offset: part.offset, bytes, etag: null }
  }

  async complete(_parts: readonly WrittenPart[], o: Abortable): Promise<ObjectInfo> {
    o.signal.throwIfAborted()
    if (this.#failure !== null) throw this.#failure
    this.#closed ??= this.#outlet.close()
    await this.#closed.catch((error: unknown) => {
      throw translateLocalError(error, this.#key, this.#offset)
    })
    const { size, etag, modifiedMs } = { size: this.#offset, etag: null, modifiedMs: null }
    return { key: this.#key, url: this.#key, size, etag, modifiedMs, ranged: false, replayable: false }
  }

  abort(): Promise<void> {
    if (this.#closed === null) this.#outlet.destroy()
    this.#closed ??= Promise.resolve()
    return Promise.resolve()
  }

  async #turn(offset: number, signal: AbortSignal): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#waiting.set(offset, resolve)
      signal.addEventListener('abort', () => resolve(), { once: true })
    })
    this.#waiting.delete(offset)
  }
}

async function openFifo(key: string, o: Abortable): Promise<Outlet> {
  for (;;) {
    o.signal.throwIfAborted()
    try {
      const fd = await promisify(openCallback)(key, constants.O_WRONLY | constants.O_NONBLOCK)
      return socketOutlet(new Socket({ fd, readable: false, writable: true }))
    } catch (error) {
      // Nobody reads yet. Opening without O_NONBLOCK would block a thread, and with it the end of the process.
      if (localErrorCode(error) !== 'ENXIO') throw translateLocalError(error, key)
      await delay(READER_POLL_MS, undefined, { signal: o.signal }).catch(() => o.signal.throwIfAborted())
    }
  }
}

function socketOutlet(socket: Socket): Outlet {
  let failure: Error | null = null
  socket.on('error', (error) => {
    failure = error
  })
  return {
    write: async (bytes) => {
      for (const chunk of bytes) {
        if (failure !== null) throw failure
        await new Promise<void>((resolve, reject) => {
          socket.write(chunk, (error) => (error ? reject(error) : resolve()))
        })
      }
    },
    close: () =>
      new Promise((resolve, reject) => {
        socket.once('close', () => (failure === null ? resolve() : reject(failure)))
        socket.end()
      }),
    destroy: () => socket.destroy(),
  }
}

/** Descriptors of this process by name; the third group is the number. */
const OWN_DESCRIPTOR = /^(\/dev\/(stdout|stderr|fd\/(\d+))|\/proc\/self\/fd\/(\d+))$/

/** The number behind `/dev/stdout`, `/dev/stderr`, `/dev/fd/N`, `/proc/self/fd/N`; null for any other path. */
export function ownDescriptor(path: string): number | null {
  const match = OWN_DESCRIPTOR.exec(path)
  if (match === null) return null
  if (match[2] === 'stdout') return 1
  return match[2] === 'stderr' ? 2 : Number(match[3] ?? match[4])
}

/**
 * A device; or the plain file behind a descriptor of ours, by that descriptor: opened anew by name it would have an offset of its
 * own, and whoever writes after us to the same output would write over it. It stays open.
 */
async function openInPlace(key: string): Promise<Outlet> {
  const own = ownDescriptor(key)
  const fd = own ?? (await openByName(key))
  const writeTo = promisify(writeCallback)
  let open = own === null
  const close = async (): Promise<void> => {
    if (!open) return
    open = false
    await promisify(closeCallback)(fd)
  }
  return {
    write: async (bytes) => {
      for (const chunk of bytes) {
        for (let at = 0; at < chunk.byteLength;) {
          at += (await writeTo(fd, chunk, at, chunk.byteLength - at, null)).bytesWritten
        }
      }
    },
    close,
    destroy: () => {
      close().catch(() => undefined)
    },
  }
}

async function openByName(key: string): Promise<number> {
  return promisify(openCallback)(key, constants.O_WRONLY).catch((error: unknown) => {
    throw translateLocalError(error, key)
  })
}
