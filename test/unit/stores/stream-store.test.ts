import { PassThrough, Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import type { ByteRange } from '../../../src/core/ports.ts'
import { createStreamStore } from '../../../src/stores/stream-store.ts'

const o = { signal: new AbortController().signal }
const ALL: ByteRange = { start: 0, end: Number.POSITIVE_INFINITY }

async function readText(input: AsyncIterable<Uint8Array>, range: ByteRange): Promise<string> {
  const store = createStreamStore(input)
  const chunks: Uint8Array[] = []
  for await (const chunk of store.read(await store.head('-', o), range, o)) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

const letters = (): Readable => Readable.from(['abc', '', 'def', 'ghi'].map((text) => Buffer.from(text)))

describe('stream store', () => {
  it.each([
    [ALL, 'abcdefghi'],
    [{ start: 0, end: 4 }, 'abcd'],
    [{ start: 2, end: 3 }, 'c'],
    [{ start: 4, end: Number.POSITIVE_INFINITY }, 'efghi'],
    [{ start: 3, end: 3 }, ''],
    [{ start: 20, end: 30 }, ''],
  ])('gives of its one read the range %j', async (range, text) => {
    expect(await readText(letters(), range)).toBe(text)
  })

  it('has one name', async () => {
    await expect(createStreamStore(letters()).head('/a', o)).rejects.toMatchObject({ code: 'SLUICE_NOT_FOUND' })
  })

  it('reads no more than it is asked for', async () => {
    let made = 0
    async function* input(): AsyncGenerator<Uint8Array> {
      for (;;) {
        made += 1
        yield Buffer.alloc(10)
      }
    }
    expect((await readText(input(), { start: 0, end: 15 })).length).toBe(15)
    expect(made).toBe(2)
  })

  it('ends at once when it is told to, although nothing comes, and lets go of the stream', async () => {
    const input = new PassThrough()
    const store = createStreamStore(input)
    const stop = new AbortController()
    const reason = new Error('enough')
    const info = await store.head('-', o)
    const read = (async () => {
      for await (const chunk of store.read(info, ALL, { signal: stop.signal })) {
        expect(chunk.toString()).toBe('first')
        setTimeout(() => stop.abort(reason), 20)
      }
    })()
    input.write('first')
    await expect(read).rejects.toBe(reason)
    expect(input.destroyed).toBe(true)
  })

  it('translates what goes wrong', async () => {
    const cause = Object.assign(new Error('EISDIR: illegal operation on a directory, read'), { code: 'EISDIR' })
    const input = new Readable({
      read() {
        this.destroy(cause)
      },
    })
    await expect(readText(input, ALL)).rejects.toMatchObject({ code: 'SLUICE_LOCAL_IO', where: { url: '-' }, cause })
  })
})
