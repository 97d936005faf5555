import type { HttpResponse, ResponseBody } from '../../aws/http-pool.ts'
import { SluiceError } from '../../core/errors.ts'
import type { Abortable, ByteRange, ObjectInfo } from '../../core/ports.ts'
import { retry } from '../../core/retry.ts'
import { type HttpContext, oddRange, policyOf } from './head.ts'
import { contentLength, contradicts, ifRange, parseContentRange, pinOf } from './pin.ts'
import { statusError } from './status.ts'

interface Wanted {
  readonly info: ObjectInfo
  readonly range: ByteRange
}

/**
 * A range in order, as it arrives. After a cut it goes on at the byte where it broke; the budget of `retryForMs` counts from the last byte.
 *
 * @throws SLUICE_SOURCE_CHANGED, SLUICE_SOURCE_SHORT (too few bytes), SLUICE_PROTOCOL (too many), SLUICE_NETWORK, SLUICE_NOT_REPLAYABLE (a
 * second read, or a cut, where the server offers no pin)
 */
export async function* readHttp(
  context: HttpContext,
  wanted: Wanted,
  o: Abortable,
): AsyncGenerator<Uint8Array, void, undefined> {
  const reading = new Reading(context, wanted, o.signal)
  const policy = policyOf(context, o)
  try {
    for (;;) {
      const chunk = await retry(() => reading.step(), policy)
      if (chunk === null) return
      yield chunk
    }
  } finally {
    reading.close()
  }
}

/** One read: where it is, and the answer it takes its bytes from. */
class Reading {
  readonly #context: HttpContext
  readonly #info: ObjectInfo
  readonly #signal: AbortSignal
  readonly #start: number
  /** Infinity while the size is unknown. */
  readonly #end: number
  #at: number
  #body: ResponseBody | null = null
  /** Bytes of the answer before `#at`: the server sent all where a range was asked for. */
  #skip = 0
  /** Where the answer in hand ends by its own word. */
  #announcedEnd = Number.POSITIVE_INFINITY
  #finished = false
  #claimed = false

  constructor(context: HttpContext, { info, range }: Wanted, signal: AbortSignal) {
    this.#context = context
    this.#info = info
    this.#signal = signal
    this.#start = range.start
    this.#end = Math.min(range.end, info.size ?? Number.POSITIVE_INFINITY)
    this.#at = range.start
  }

  /**
   * The next chunk; null at the end. After an error the next step asks anew, from the byte where it broke. Bytes that are skipped on the way
   * there are no progress, or a server that always breaks at the same byte would be asked for ever.
   */
  async step(): Promise<Uint8Array | null> {
    try {
      while (this.#body !== null || this.#at < this.#end) {
        this.#body ??= await this.#open()
        const chunk = await this.#body.next()
        if (chunk === null) this.#endAnswer()
        else if (this.#skip >= chunk.byteLength) this.#skip -= chunk.byteLength
        else return this.#take(chunk)
        if (this.#finished) return null
      }
      return null
    } catch (error) {
      this.close()
      throw this.#broke(error)
    }
  }

  close(): void {
    this.#body?.destroy()
    this.#body = null
  }

  #take(chunk: Uint8Array): Uint8Array | null {
    const rest = chunk.subarray(this.#skip)
    this.#skip = 0
    const wanted = rest.subarray(0, this.#end - this.#at)
    this.#at += wanted.byteLength
    if (wanted.byteLength < rest.byteLength) {
      if (this.#end === this.#info.size) throw this.#tooLong()
      this.close()
    }
    return wanted.byteLength === 0 ? null : wanted
  }

  /** The answer has ended. Its end is waited for even where all bytes are there: a server that sends too many is found out so. */
  #endAnswer(): void {
    this.#body = null
    const whole = this.#announcedEnd === Number.POSITIVE_INFINITY
    const complete = this.#at >= this.#end || (this.#info.size === null && (whole || this.#at === this.#announcedEnd))
    if (complete) this.#finished = true
    // A server may send less than was asked for and say so (RFC 9110, 15.3.7): then the rest is asked for.
    else if (this.#at !== this.#announcedEnd) {
      throw new SluiceError('SLUICE_SOURCE_SHORT', `the answer ended after ${this.#at} of ${this.#end} bytes`, {
        where: this.#where(),
      })
    }
  }

  async #open(): Promise<ResponseBody> {
    const { etag, key } = this.#info
    if (etag === null) this.#claim()
    const partly = this.#info.ranged && (this.#at > 0 || this.#end !== (this.#info.size ?? Number.POSITIVE_INFINITY))
    const headers: Record<string, string> = {}
    if (partly) {
      headers.range = `bytes=${this.#at}-${Number.isFinite(this.#end) ? this.#end - 1 : ''}`
      const condition = etag === null ? null : ifRange(etag)
      if (condition !== null) headers['if-range'] = condition
    }
    const response = await this.#context.requests.send(key, { headers, signal: this.#signal })
    try {
      this.#accept(response, partly)
    } catch (error) {
      response.body.destroy()
      throw error
    }
    return response.body
  }

  #accept(response: HttpResponse, partly: boolean): void {
    const { status, headers } = response
    const info = this.#info
    if (status === 206 && partly) {
      const answer = parseContentRange(headers['content-range'])
      if (answer?.range?.start !== this.#at) throw oddRange(headers['content-range'], info.key)
      if (info.etag !== null && contradicts(info.etag, headers, answer.size))
        throw this.#changed('another ETag, date or encoding')
      if (info.size !== null && answer.size !== null && answer.size !== info.size)
        throw this.#changed(`${answer.size} bytes now`)
      this.#skip = 0
      this.#announcedEnd = answer.range.end
      return
    }
    if (status !== 200) throw statusError(status, headers, info.url)
    const size = contentLength(headers)
    if (info.size !== null && size !== null && size !== info.size) throw this.#changed(`${size} bytes now`)
    // Without Content-Length (chunked) the size of the pin is counted while reading instead.
    if (info.etag !== null && pinOf(headers, size ?? info.size) !== info.etag)
      throw this.#changed('another ETag, date or encoding')
    this.#skip = this.#at
    this.#announcedEnd = Number.POSITIVE_INFINITY
  }

  /** Without a pin there is one read of it, as nobody could tell whether a second sees the same bytes. */
  #claim(): void {
    const { taken } = this.#context
    const first = !taken.has(this.#info.key)
    taken.add(this.#info.key)
    if (!this.#claimed && !first) {
      throw new SluiceError(
        'SLUICE_NOT_REPLAYABLE',
        'the server sends neither a strong ETag nor a date, so the file can be read only once',
        {
          where: this.#where(),
          hint: 'download it first, and load the file',
        },
      )
    }
    this.#claimed = true
  }

  /** What stopped an answer. Where it cannot be taken up again, that is the error, and the break its cause. */
  #broke(error: unknown): unknown {
    if (this.#signal.aborted || !(error instanceof SluiceError)) return error
    if (this.#info.etag === null && error.retryable && this.#at > this.#start) {
      return new SluiceError(
        'SLUICE_NOT_REPLAYABLE',
        `the transfer broke, and cannot go on without an ETag or a date: ${error.message}`,
        {
          where: this.#where(),
          hint: 'run the command again, or download the file first',
          cause: error,
        },
      )
    }
    return error.at(this.#where())
  }

  #changed(how: string): SluiceError {
    return new SluiceError('SLUICE_SOURCE_CHANGED', `the file changed while it was read (${how})`, {
      where: this.#where(),
    })
  }

  #tooLong(): SluiceError {
    return new SluiceError('SLUICE_PROTOCOL', `the server sends more than the ${this.#end} bytes that it announced`, {
      where: this.#where(),
    })
  }

  #where(): { url: string; byte: number } {
    return { url: this.#info.url, byte: this.#at }
  }
}
