import { describe, expect, it } from 'vitest'
import { SluiceError } from '../../../../src/core/errors.ts'
import { dynamoHost, findDynamoTarget, parseDynamoUrl } from '../../../../src/connectors/dynamodb/url.ts'

const failure = (url: string): SluiceError => {
  try {
    parseDynamoUrl(url)
  } catch (error) {
    if (error instanceof SluiceError) return error
  }
  throw new Error(`${url} was taken`)
}

describe('parseDynamoUrl', () => {
  it('takes region and table', () => {
    expect(parseDynamoUrl('dynamodb://eu-west-1/Postcodes')).toEqual({
      region: 'eu-west-1',
      table: 'Postcodes',
      url: 'dynamodb://eu-west-1/Postcodes',
    })
    expect(parseDynamoUrl('dynamodb:///My.table-2_x')).toMatchObject({ region: null, table: 'My.table-2_x' })
    expect(parseDynamoUrl('DynamoDB://EU-west-1/T1_').url).toBe('dynamodb://eu-west-1/T1_')
  })

  it.each([
    ['dynamodb://Postcodes', /names no table/],
    ['dynamodb:///', /names no table/],
    ['dynamodb://', /names no table/],
    ['dynamodb:Postcodes', /no DynamoDB URL/],
    ['dynamodb:///ab', /cannot be the name/],
    ['dynamodb:///a/b', /cannot be the name/],
    ['dynamodb:///a%20b', /cannot be the name/],
    [`dynamodb:///${'x'.repeat(256)}`, /cannot be the name/],
    ['dynamodb:///Table?region=eu-west-1', /takes no parameters/],
    ['dynamodb://eu_west/Table', /cannot be a region/],
    ['dynamodb://localhost:8000/Table', /neither credentials nor an address/],
  ])('refuses %s', (url, message) => {
    expect(failure(url)).toMatchObject({ code: 'SLUICE_USAGE', message: expect.stringMatching(message) as string })
  })

  it('offers the table where it was taken for the region', () => {
    expect(failure('dynamodb://Postcodes').hint).toContain('dynamodb:///Postcodes')
  })

  it('prints no secret', () => {
    const error = failure('dynamodb://AKIDEXAMPLE:wJalrXUtnFEMI@eu-west-1/Table')
    expect(`${error.message} ${error.hint}`).not.toContain('wJalrXUtnFEMI')
  })
})

describe('findDynamoTarget', () => {
  const env = { HOME: '/nonexistent' }

  it("takes the region of the URL, the flag, the environment, then AWS's own", async () => {
    const region = async (url: string, said: string | undefined, around: Record<string, string>): Promise<string> =>
      (await findDynamoTarget(url, { options: said === undefined ? {} : { region: said }, env: { ...env, ...around } }))
        .region
    expect(await region('dynamodb://eu-west-1/Table', 'eu-west-2', { AWS_REGION: 'eu-west-3' })).toBe('eu-west-1')
    expect(await region('dynamodb:///Table', 'eu-west-2', { AWS_REGION: 'eu-west-3' })).toBe('eu-west-2')
    expect(await region('dynamodb:///Table', undefined, { AWS_REGION: 'eu-west-3' })).toBe('eu-west-3')
    expect(await region('dynamodb:///Table', undefined, {})).toBe('us-east-1')
  })

  it("takes DynamoDB's own endpoint before the general one", async () => {
    const endpoint = async (around: Record<string, string>): Promise<string | undefined> =>
      (await findDynamoTarget('dynamodb:///Table', { options: {}, env: { ...env, ...around } })).endpoint?.href
    expect(await endpoint({ AWS_ENDPOINT_URL_DYNAMODB: 'http://a:1', AWS_ENDPOINT_URL: 'http://b:2' })).toBe(
      'http://a:1/',
    )
    expect(await endpoint({ AWS_ENDPOINT_URL: 'http://b:2' })).toBe('http://b:2/')
    expect(await endpoint({ AWS_ENDPOINT_URL_DYNAMODB: '' })).toBeUndefined()
    await expect(endpoint({ AWS_ENDPOINT_URL: 'localhost' })).rejects.toMatchObject({ code: 'SLUICE_USAGE' })
  })

  it('knows the hosts of AWS', () => {
    expect(dynamoHost('eu-west-1')).toBe('dynamodb.eu-west-1.amazonaws.com')
    expect(dynamoHost('cn-north-1')).toBe('dynamodb.cn-north-1.amazonaws.com.cn')
  })
})
