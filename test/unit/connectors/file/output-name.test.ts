import { describe, expect, it } from 'vitest'
import { parseEndpoint } from '../../../../src/connectors/file/endpoint.ts'
import { outputKey, outputNames, requireFileName, sourceStem } from '../../../../src/connectors/file/output-name.ts'

describe('names of outputs under a folder', () => {
  const folder = parseEndpoint('/data/in/')

  it.each(['../x', 'a/../../x', '..', 'a//b', './a', '/etc/x', 'a\0b'])('%j is refused', (name) => {
    expect(() => requireFileName(folder, name)).toThrow(/cannot be a file under/)
  })

  it.each(['a', 'a/b.txt', '..a', 'a..', '...', 'ü +%'])('%j is a file', (name) => {
    requireFileName(folder, name)
    expect(outputKey(folder, name)).toBe(`/data/in/${name}`)
  })

  it('objects may be called as they like', () => {
    expect(() => requireFileName(parseEndpoint('s3://b/p/'), '../x')).not.toThrow()
  })

  it.each([
    ['s3://b/people.csv.gz', 'people'],
    ['people.tar', 'people.tar'],
    ['s3://b/p/*.csv', 'data'],
    ['-', 'data'],
    ['postgres://u@h/db?table=public.people&sslmode=off', 'people'],
    ['postgres://u@h/db?table=public.%22a.b%2Fc%22', 'a.b_c'],
    ['postgres://u@h/db', 'data'],
    ['dynamodb://eu-west-1/Orders?x=y', 'Orders'],
  ])('of %s begin with %s', (source, stem) => expect(sourceStem(source)).toBe(stem))

  it('of a query begin with data', () => {
    expect(sourceStem('postgres://u@h/db?table=t', 'select 1')).toBe('data')
  })
})

describe('names of files', () => {
  const prefix = parseEndpoint('s3://b/p/')
  const common = { stem: 'people', ending: 'csv.gz', partitions: 3, single: false, rolls: false }
  const keys = (o: Partial<typeof common>): string[] => {
    const names = outputNames(prefix, { ...common, ...o })
    return [names.place(1, 1), names.place(3, 12)].map(({ key }) => key)
  }

  it('under a prefix have the number of their partition, and that in their sequence', () => {
    expect(keys({})).toEqual(['b/p/people-00001.csv.gz', 'b/p/people-00003.csv.gz'])
    expect(keys({ rolls: true })).toEqual(['b/p/people-00001-00001.csv.gz', 'b/p/people-00003-00012.csv.gz'])
    expect(keys({ rolls: true, single: true })).toEqual(['b/p/people-00001.csv.gz', 'b/p/people-00012.csv.gz'])
    expect(keys({ single: true })[0]).toBe('b/p/people.csv.gz')
    expect(keys({ partitions: 1 })[0]).toBe('b/p/people.csv.gz')
  })

  it('are one where the sink is a name, which cannot be a sequence', () => {
    const names = outputNames(parseEndpoint('s3://b/x.csv'), common)
    expect([names.perPartition, names.place(2, 1)]).toEqual([false, { key: 'b/x.csv', url: 's3://b/x.csv' }])
    expect(() => outputNames(parseEndpoint('s3://b/x.csv'), { ...common, rolls: true })).toThrow(/need a prefix/)
  })
})
