import { describe, expect, it } from 'vitest'
import { connectorFor } from '../../../src/connectors/registry.ts'

describe('a URL that nothing serves', () => {
  it.each([
    ['s4://b/k', /^nothing serves s4:\/\/ \(s4:\/\/b\/k\); did you mean s3:\/\/\?$/],
    [
      'postgre://u:secret@h/db',
      /^nothing serves postgre:\/\/ \(postgre:\/\/u:\*\*\*@h\/db\); did you mean postgres:\/\/\?$/,
    ],
    ['pg://h/db', /did you mean postgres:\/\/\?$/],
    ['dynamo://r/T', /did you mean dynamodb:\/\/\?$/],
    ['htps://h/x', /did you mean https?:\/\/\?$/],
    ['mysql://h/db', /^nothing serves mysql:\/\/ \(mysql:\/\/h\/db\)$/],
    ['jdbc:postgresql://h/db?user=u&password=secret', /^a database is named by a URL(?!.*secret)/],
    ['host=h port=5 dbname=d password=secret', /^a database is named by a URL(?!.*secret)/],
    ['dbname = d user = u', /^a database is named by a URL/],
    ['S3:/b/k', /^S3: begins no URL without two slashes$/],
    ['postgres:/u:secret@h/db', /^postgres: begins no URL without two slashes$/],
  ])('%s', async (url, message) => {
    await expect(connectorFor(url)).rejects.toMatchObject({
      code: 'SLUICE_USAGE',
      message: expect.stringMatching(message) as string,
    })
  })
})

it.each([
  'a.csv',
  '-',
  './s3:/b',
  'C:\\data\\a.csv',
  '10:15.csv',
  'host=a.csv',
  'year=2024/x.csv',
  'user=1 b.csv',
  'FILE:///a',
  's3://b/k',
  'http://h/x',
])('%s is served by files and stores', async (url) => expect((await connectorFor(url)).name).toBe('file'))
