import { describe, expect, it } from 'vitest'
import { parseEndpoint } from '../../../../src/connectors/file/endpoint.ts'
import { convertedName, outputKey, requireFileName } from '../../../../src/connectors/file/output-name.ts'

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
    ['s3://b/people.csv.gz', 'jsonl', 'people.jsonl'],
    ['people.tar', 'csv.zst', 'people.tar.csv.zst'],
    ['-', 'csv', 'data.csv'],
  ])('%s becomes %s: %s', (source, ending, name) => expect(convertedName(source, ending)).toBe(name))
})
