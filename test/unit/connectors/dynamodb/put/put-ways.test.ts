import { expect, it } from 'vitest'
import { SluiceError } from '../../../../../src/core/errors.ts'
import type { ExtentWriter, PutWay } from '../../../../../src/connectors/dynamodb/put/put-way.ts'
import { PutWays, type ThreadsWay } from '../../../../../src/connectors/dynamodb/put/put-ways.ts'

/** A way that notes what it is asked; an extent is in when the test says so. */
function way(name: string, log: string[]): PutWay & { settle: () => void } {
  const waiting: (() => void)[] = []
  return {
    begin: (): ExtentWriter => {
      log.push(name)
      return {
        write: () => Promise.resolve(),
        written: () => undefined,
        settled: async () => {
          await new Promise<void>((resolve) => waiting.push(resolve))
          return { accepted: 0, superseded: 0, bytes: 0 }
        },
      }
    },
    mayHavePut: false,
    stop: () => log.push(`stop ${name}`),
    settle: () => waiting.splice(0).forEach((resolve) => resolve()),
  }
}

function threads(log: string[]): ThreadsWay {
  return Object.assign(way('threads', log), {
    ready: Promise.resolve(),
    isReady: true,
    close: () => {
      log.push('close')
      return Promise.resolve()
    },
  })
}

const onNoThreads = (error: SluiceError): void => {
  throw error
}

/** Takes all of this thread's time, as encoding does. */
function work(ms: number): void {
  const endMs = performance.now() + ms
  while (performance.now() < endMs);
}

it('goes over to threads once this thread is busy, when all that it sent is in', async () => {
  const log: string[] = []
  const own = way('own', log)
  const ways = new PutWays({ own, startThreads: () => threads(log), threads: 'busy', onNoThreads })
  const last = []
  for (let i = 0; i < 5; i += 1) {
    const writer = await ways.begin()
    work(10)
    last.push(writer.settled())
  }
  expect(log).toEqual(Array.from({ length: 5 }, () => 'own'))
  let begun = false
  const next = ways.begin().then(() => {
    begun = true
  })
  await new Promise((resolve) => setTimeout(resolve, 20))
  expect(begun).toBe(false)
  own.settle()
  await Promise.all(last)
  await next
  expect(log.at(-1)).toBe('threads')
  await ways.begin()
  expect(log.at(-1)).toBe('threads')
  ways.stop(new Error('enough'))
  await ways.close()
  expect(log.slice(-3)).toEqual(['stop own', 'stop threads', 'close'])
})

it('stays in this thread while it has time left', async () => {
  const log: string[] = []
  const own = way('own', log)
  const ways = new PutWays({ own, startThreads: () => threads(log), threads: 'busy', onNoThreads })
  for (let i = 0; i < 20; i += 1) {
    await ways.begin()
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  expect(new Set(log)).toEqual(new Set(['own']))
})

it.each(['never', 'always'] as const)('threads %s', async (when) => {
  const log: string[] = []
  const ways = new PutWays({ own: way('own', log), startThreads: () => threads(log), threads: when, onNoThreads })
  await ways.begin()
  expect(log).toEqual([when === 'never' ? 'own' : 'threads'])
})

it.each(['at once', 'while they begin'])(
  'threads that fail %s are told once, and this thread writes alone',
  async (when) => {
    const log: string[] = []
    const told: string[] = []
    const failure = new SluiceError('SLUICE_THREADS', 'no memory')
    const startThreads = (): ThreadsWay => {
      log.push('start')
      if (when === 'at once') throw failure
      return { ...threads(log), isReady: false, ready: Promise.reject(failure) }
    }
    const own = way('own', log)
    const ways = new PutWays({ own, startThreads, threads: 'busy', onNoThreads: ({ message }) => told.push(message) })
    for (let i = 0; i < 24; i += 1) {
      await ways.begin()
      work(2)
    }
    await ways.close()
    expect(log.filter((name) => name === 'start')).toHaveLength(1)
    expect(log.filter((name) => name === 'own')).toHaveLength(24)
    expect(told).toEqual(['no memory'])
  },
)

it('threads that end since the job does are not told of', async () => {
  let reject: (error: SluiceError) => void = () => undefined
  const promise = new Promise<void>((_, failed) => (reject = failed))
  const log: string[] = []
  const close = (): Promise<void> => {
    reject(new SluiceError('SLUICE_THREADS', 'exit code 1'))
    return Promise.resolve()
  }
  const startThreads = (): ThreadsWay => ({ ...threads(log), isReady: false, ready: promise, close })
  const ways = new PutWays({ own: way('own', log), startThreads, threads: 'busy', onNoThreads })
  for (let i = 0; i < 6; i += 1) {
    await ways.begin()
    work(2)
  }
  await ways.close()
  await new Promise((resolve) => setTimeout(resolve, 0))
  expect(log).not.toContain('threads')
})
