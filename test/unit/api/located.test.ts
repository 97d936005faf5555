import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { seenFrom, seenFromHere } from '../../../src/api/located.ts'
import { copy, jobs, resume } from '../../../src/index.ts'

describe('a path as seen from a folder', () => {
  it.each([
    ['a.csv', '/x/a.csv'],
    ['./a.csv', '/x/a.csv'],
    ['../a/', '/a/'],
    ['/a.csv', '/a.csv'],
    ['-', '-'],
    ['s3://b/a.csv', 's3://b/a.csv'],
    ['file:///a.csv', 'file:///a.csv'],
    ['postgres:///db?table=t', 'postgres:///db?table=t'],
  ])('%s', (url, expected) => expect(seenFrom(url, '/x')).toBe(expected))

  it('counts for source, sink and manifest, and only where it is another one', () => {
    const job = { source: 'a.csv', sink: 's3://b/p/', options: { manifest: 'm.json' }, folder: '/x' }
    expect(seenFromHere(job, '/y')).toEqual({
      source: '/x/a.csv',
      sink: 's3://b/p/',
      options: { manifest: '/x/m.json' },
    })
    expect(seenFromHere(job, '/x')).toEqual({ source: 'a.csv', sink: 's3://b/p/', options: { manifest: 'm.json' } })
    expect(seenFromHere({ ...job, folder: undefined }, '/y').source).toBe('a.csv')
  })
})

describe('a job of relative paths', () => {
  const home = process.cwd()
  let folder = ''
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-located-'))
    for (const name of ['here', 'there']) {
      mkdirSync(join(folder, name))
      writeFileSync(join(folder, name, 'people.csv'), `id,name\n1,${name}\n`)
    }
    process.chdir(join(folder, 'here'))
  })
  afterEach(() => {
    process.chdir(home)
    rmSync(folder, { recursive: true })
  })

  const begin = (stop: boolean) => {
    const controller = new AbortController()
    return copy({
      source: 'people.csv',
      sink: 'people.jsonl',
      options: {},
      env: {},
      stateDir: join(folder, 'state'),
      signal: controller.signal,
      onEvent: (event) => {
        if (stop && event.kind === 'phase' && event.phase === 'copying') controller.abort(new Error('stopped'))
      },
    })
  }

  it('goes on with the same files from another folder', async () => {
    const { jobId } = await begin(true)
    expect((await jobs(join(folder, 'state'))).map((job) => job.status)).not.toEqual(['done'])
    process.chdir(join(folder, 'there'))
    const result = await resume({ jobId, env: {}, stateDir: join(folder, 'state') })
    expect(result).toMatchObject({ status: 'done', rowsWritten: 1, sink: join(process.cwd(), '../here/people.jsonl') })
    expect(existsSync('people.jsonl')).toBe(false)
    expect(readFileSync(join(folder, 'here/people.jsonl'), 'utf8')).toBe('{"id":"1","name":"here"}\n')
  })

  it('is another job in another folder', async () => {
    await begin(true)
    process.chdir(join(folder, 'there'))
    expect(await begin(false)).toMatchObject({ status: 'done', rowsWritten: 1 })
    expect(readFileSync('people.jsonl', 'utf8')).toBe('{"id":"1","name":"there"}\n')
  })
})
