import { describe, expect, it } from 'vitest'
import { SluiceError } from '../../../../src/core/errors.ts'
import type { DynamoCalls } from '../../../../src/connectors/dynamodb/answer.ts'
import {
  checkKeys,
  createTable,
  deleteTable,
  loadableTable,
  parseKey,
  waitActive,
  wantedKeys,
} from '../../../../src/connectors/dynamodb/table.ts'
import { parseTable, tableJson } from '../../../../src/connectors/dynamodb/table-info.ts'

const o = { signal: new AbortController().signal }
const notFound = (): SluiceError => new SluiceError('SLUICE_NOT_FOUND', 'there is no such table')
const description = (status: string, more: object = {}): object => ({
  TableName: 'Readings',
  TableStatus: status,
  AttributeDefinitions: [
    { AttributeName: 'time', AttributeType: 'N' },
    { AttributeName: 'sensor', AttributeType: 'S' },
  ],
  KeySchema: [
    { AttributeName: 'sensor', KeyType: 'HASH' },
    { AttributeName: 'time', KeyType: 'RANGE' },
  ],
  BillingModeSummary: { BillingMode: 'PAY_PER_REQUEST' },
  ItemCount: 3,
  TableSizeBytes: 99,
  ...more,
})

/** Answers DescribeTable with each of the states in turn, the last one for ever; null: not there. */
function server(states: readonly (object | null)[]): DynamoCalls & { readonly asked: [string, object][] } {
  const asked: [string, object][] = []
  let at = 0
  return {
    asked,
    call: (operation, body) => {
      asked.push([operation, body])
      if (operation !== 'DescribeTable') return Promise.resolve({})
      const state = states[Math.min(at, states.length - 1)] ?? null
      at += 1
      return state === null ? Promise.reject(notFound()) : Promise.resolve({ Table: state })
    },
  }
}

describe('keys', () => {
  it('takes NAME:TYPE, names with a colon, and S where no type is said', () => {
    expect(parseKey('id', '--partition-key')).toEqual({ name: 'id', type: 'S' })
    expect(parseKey('a:b:N', '--sort-key')).toEqual({ name: 'a:b', type: 'N' })
    expect(() => parseKey('id:X', '--partition-key')).toThrow(/--partition-key id:X/)
    expect(() => parseKey(':S', '--partition-key')).toThrow(SluiceError)
  })

  it('refuses a sort key alone, and one attribute for both', () => {
    expect(wantedKeys({})).toBeNull()
    expect(() => wantedKeys({ sortKey: 'a' })).toThrow(/--partition-key/)
    expect(() => wantedKeys({ partitionKey: 'a', sortKey: 'a:N' })).toThrow(/both keys/)
  })

  it('names the key attribute that a schema lacks, and the rename that would help', () => {
    const keys = { partitionKey: parseKey('sensor', ''), sortKey: parseKey('time:N', '') }
    const check = (names: readonly string[], named = true): void =>
      checkKeys(keys, { columns: names.map((name) => ({ name })), named })
    check(['value', 'time', 'sensor'])
    check([])
    let caught: unknown
    try {
      check(['sensor', 'Time'])
    } catch (error) {
      caught = error
    }
    expect(caught).toMatchObject({
      code: 'SLUICE_COLUMN_MISSING',
      message: 'the source has no column "time", the table\'s sort key',
      hint: expect.stringContaining('--rename Time=time') as string,
      where: { column: 'time' },
    })
    expect(() => check(['column1', 'column2'], false)).toThrow(/partition key/)
  })
})

describe('parseTable', () => {
  it('puts the partition key first, whatever the order of the answer', () => {
    const table = parseTable({
      ...description('ACTIVE'),
      KeySchema: [
        { AttributeName: 'time', KeyType: 'RANGE' },
        { AttributeName: 'sensor', KeyType: 'HASH' },
      ],
    })
    expect(table).toMatchObject({
      partitionKey: { name: 'sensor', type: 'S' },
      sortKey: { name: 'time', type: 'N' },
      billing: 'on-demand',
      items: 3,
      bytes: 99,
      provisioned: null,
    })
  })

  it('tells units, warm throughput, bounds, indexes, stream and protection', () => {
    const table = parseTable({
      ...description('UPDATING'),
      BillingModeSummary: undefined,
      ProvisionedThroughput: { ReadCapacityUnits: 5, WriteCapacityUnits: 6, NumberOfDecreasesToday: 0 },
      OnDemandThroughput: { MaxReadRequestUnits: -1, MaxWriteRequestUnits: 40 },
      WarmThroughput: { ReadUnitsPerSecond: 12_000, WriteUnitsPerSecond: 4_000, Status: 'ACTIVE' },
      GlobalSecondaryIndexes: [
        { IndexName: 'byTime', IndexStatus: 'ACTIVE', KeySchema: [{ AttributeName: 'time', KeyType: 'HASH' }] },
      ],
      StreamSpecification: { StreamEnabled: true },
      DeletionProtectionEnabled: true,
    })
    expect(tableJson(table)).toMatchObject({
      billing: 'provisioned',
      provisioned: { readUnits: 5, writeUnits: 6 },
      onDemandLimit: { readUnits: null, writeUnits: 40 },
      warm: { readUnits: 12_000, writeUnits: 4_000 },
      indexes: [{ name: 'byTime', kind: 'global', status: 'ACTIVE', keys: [{ name: 'time', type: 'N' }] }],
      stream: true,
      deletionProtection: true,
    })
  })

  it('refuses an answer that describes no table', () => {
    expect(() => parseTable({})).toThrow(expect.objectContaining({ code: 'SLUICE_PROTOCOL' }) as Error)
  })
})

describe('createTable, waitActive, deleteTable', () => {
  const keys = wantedKeys({ partitionKey: 'sensor', sortKey: 'time:N' })
  if (keys === null) throw new Error('no keys')

  it('asks for a table on demand', async () => {
    const calls = server([null])
    await createTable(calls, { table: 'Readings', ...keys }, o)
    expect(calls.asked).toEqual([
      [
        'CreateTable',
        {
          TableName: 'Readings',
          BillingMode: 'PAY_PER_REQUEST',
          AttributeDefinitions: [
            { AttributeName: 'sensor', AttributeType: 'S' },
            { AttributeName: 'time', AttributeType: 'N' },
          ],
          KeySchema: [
            { AttributeName: 'sensor', KeyType: 'HASH' },
            { AttributeName: 'time', KeyType: 'RANGE' },
          ],
        },
      ],
    ])
  })

  it('tells that a table is there already, but not of its own request that was sent twice', async () => {
    const refusing = (state: object): DynamoCalls => ({
      call: (operation) =>
        operation === 'CreateTable'
          ? Promise.reject(new SluiceError('SLUICE_USAGE', 'ResourceInUseException'))
          : Promise.resolve({ Table: state }),
    })
    await expect(createTable(refusing(description('ACTIVE')), { table: 'Readings', ...keys }, o)).rejects.toMatchObject(
      {
        code: 'SLUICE_EXISTS',
      },
    )
    await createTable(refusing(description('CREATING')), { table: 'Readings', ...keys }, o)
  })

  it('waits while the table is unknown yet or being created', async () => {
    const calls = server([null, description('CREATING'), description('ACTIVE')])
    expect((await waitActive(calls, 'Readings', o)).status).toBe('ACTIVE')
    expect(calls.asked).toHaveLength(3)
  })

  it('waits no longer than its bound, and ends by its signal', async () => {
    const calls = server([description('CREATING')])
    await expect(waitActive(calls, 'Readings', { ...o, longestMs: 150 })).rejects.toMatchObject({
      code: 'SLUICE_SERVER',
    })
    const stop = new AbortController()
    const waiting = waitActive(calls, 'Readings', { signal: stop.signal })
    stop.abort(new Error('enough'))
    await expect(waiting).rejects.toThrow('enough')
  })

  it.each(['INACCESSIBLE_ENCRYPTION_CREDENTIALS', 'ARCHIVING', 'ARCHIVED'])(
    'does not wait for a table that is %s',
    async (status) => {
      const calls = server([description(status)])
      const wanted = { table: 'Readings', options: {} }
      await expect(loadableTable(calls, wanted, o)).rejects.toMatchObject({
        code: 'SLUICE_ACCESS_DENIED',
        message: expect.stringContaining(status) as unknown,
      })
    },
  )

  it.each([
    ['is being deleted', description('DELETING'), 'SLUICE_EXISTS'],
    ['is gone', null, 'SLUICE_NOT_FOUND'],
  ] as const)('a deletion whose answer was lost went well: asked again, the table %s', async (_, state, code) => {
    const calls = server([description('ACTIVE'), state, null])
    const again: DynamoCalls = {
      call: (operation, body, abortable) =>
        operation === 'DeleteTable'
          ? Promise.reject(new SluiceError(code, 'as the second answer says'))
          : calls.call(operation, body, abortable),
    }
    await deleteTable(again, 'Readings', o)
    expect(calls.asked).toHaveLength(3)
  })

  it('a deletion that is refused is an error', async () => {
    const calls = server([description('ACTIVE')])
    const refusing: DynamoCalls = {
      call: (operation, body, abortable) =>
        operation === 'DeleteTable'
          ? Promise.reject(new SluiceError('SLUICE_ACCESS_DENIED', 'refused'))
          : calls.call(operation, body, abortable),
    }
    await expect(deleteTable(refusing, 'Readings', o)).rejects.toMatchObject({ code: 'SLUICE_ACCESS_DENIED' })
  })

  it('deletes and waits until it is gone; a protected table stays', async () => {
    const calls = server([description('ACTIVE'), description('DELETING'), null])
    await deleteTable(calls, 'Readings', o)
    expect(calls.asked.map(([operation]) => operation)).toEqual([
      'DescribeTable',
      'DeleteTable',
      'DescribeTable',
      'DescribeTable',
    ])
    const guarded = server([description('ACTIVE', { DeletionProtectionEnabled: true })])
    await expect(deleteTable(guarded, 'Readings', o)).rejects.toMatchObject({ code: 'SLUICE_USAGE' })
    expect(guarded.asked).toHaveLength(1)
  })
})

describe('loadableTable', () => {
  it('takes the table that is there, and refuses another key than it has', async () => {
    const calls = server([description('ACTIVE')])
    const found = await loadableTable(calls, { table: 'Readings', options: {} }, o)
    expect(found).toMatchObject({ created: false, table: { name: 'Readings' } })
    await expect(
      loadableTable(calls, { table: 'Readings', options: { createTable: true, partitionKey: 'id:S' } }, o),
    ).rejects.toMatchObject({ code: 'SLUICE_USAGE', message: 'the key of Readings is sensor:S, time:N, not id:S' })
  })

  it('makes the missing one only where it is asked to, with a key', async () => {
    const missing = server([null])
    await expect(loadableTable(missing, { table: 'Readings', options: {} }, o)).rejects.toMatchObject({
      code: 'SLUICE_NOT_FOUND',
    })
    await expect(
      loadableTable(missing, { table: 'Readings', options: { createTable: true } }, o),
    ).rejects.toMatchObject({
      code: 'SLUICE_USAGE',
    })
    expect(missing.asked.every(([operation]) => operation === 'DescribeTable')).toBe(true)
    const calls = server([null, description('CREATING'), description('ACTIVE')])
    const options = { createTable: true, partitionKey: 'sensor:S', sortKey: 'time:N' }
    expect(await loadableTable(calls, { table: 'Readings', options }, o)).toMatchObject({
      created: true,
      table: { status: 'ACTIVE' },
    })
  })
})

describe('a table that appears while it is to be made', () => {
  const racing = (there: object): DynamoCalls => {
    const calls = server([null, there])
    return {
      call: (operation, body, abortable) =>
        operation === 'CreateTable'
          ? Promise.reject(new SluiceError('SLUICE_EXISTS', 'ResourceInUseException'))
          : calls.call(operation, body, abortable),
    }
  }
  const options = { createTable: true, partitionKey: 'sensor:S', sortKey: 'time:N' }

  it('is loaded like one that was there', async () => {
    const found = await loadableTable(racing(description('ACTIVE')), { table: 'Readings', options }, o)
    expect(found).toMatchObject({ created: false, table: { status: 'ACTIVE' } })
  })

  it('is refused where it has another key', async () => {
    const other = { ...options, sortKey: 'time:S' }
    await expect(
      loadableTable(racing(description('ACTIVE')), { table: 'Readings', options: other }, o),
    ).rejects.toMatchObject({ code: 'SLUICE_USAGE' })
  })
})

describe('--warm-writes', () => {
  const options = { createTable: true, partitionKey: 'sensor:S', sortKey: 'time:N', warmWrites: 20_000 }
  async function warnings(states: readonly (object | null)[]): Promise<readonly string[]> {
    const warned: string[] = []
    await loadableTable(server(states), { table: 'Readings', options, warn: (text) => warned.push(text) }, o)
    return warned
  }

  it('is asked for where the table is made, and what the server made of it is told', async () => {
    const warm = (WriteUnitsPerSecond: number): object =>
      description('ACTIVE', { WarmThroughput: { ReadUnitsPerSecond: 12_000, WriteUnitsPerSecond } })
    const calls = server([null, warm(20_000)])
    await loadableTable(calls, { table: 'Readings', options }, o)
    expect(calls.asked.find(([operation]) => operation === 'CreateTable')?.[1]).toMatchObject({
      BillingMode: 'PAY_PER_REQUEST',
      WarmThroughput: { WriteUnitsPerSecond: 20_000 },
    })
    expect(await warnings([null, warm(20_000)])).toEqual([])
    expect(await warnings([null, warm(4000)])).toEqual([
      expect.stringContaining('bears 4000 writes a second') as string,
    ])
    expect(await warnings([null, description('ACTIVE')])).toEqual([
      expect.stringContaining('does not say what the table bears') as string,
    ])
  })

  it('does nothing to a table that is there, and says so; without --create-table it is refused', async () => {
    expect(await warnings([description('ACTIVE')])).toEqual([expect.stringContaining('is there already') as string])
    await expect(
      loadableTable(server([null]), { table: 'Readings', options: { warmWrites: 5000 } }, o),
    ).rejects.toMatchObject({ code: 'SLUICE_USAGE' })
  })

  it('a provisioned table is made with its units', async () => {
    const calls = server([null])
    const provisioned = { readUnits: 5, writeUnits: 100 }
    const keys = { partitionKey: parseKey('id', ''), sortKey: null }
    await createTable(calls, { table: 'Readings', ...keys, provisioned }, o)
    expect(calls.asked[0]?.[1]).toMatchObject({
      BillingMode: 'PROVISIONED',
      ProvisionedThroughput: { ReadCapacityUnits: 5, WriteCapacityUnits: 100 },
    })
  })

  it('no table is made for rows that lack its key', async () => {
    const calls = server([null])
    const schema = { columns: [{ name: 'time' }, { name: 'value' }], named: true }
    await expect(loadableTable(calls, { table: 'Readings', options, schema }, o)).rejects.toMatchObject({
      code: 'SLUICE_COLUMN_MISSING',
    })
    expect(calls.asked.map(([operation]) => operation)).toEqual(['DescribeTable'])
  })
})
