import { describe, expect, it } from 'vitest'
import { timeObjection } from '../../../../../src/connectors/postgres/values/value-checks-time.ts'
import { zoneGap } from '../../../../../src/connectors/postgres/values/zone-gap.ts'

describe('zoneGap', () => {
  it.each([
    ['America/New_York', '2024-03-10 02:30:00', true],
    ['America/New_York', '2024-03-10T02:00', true],
    ['America/New_York', '2024-03-10 01:59:59.999999', false],
    ['America/New_York', '2024-03-10 03:00:00', false],
    // Twice that day: PostgreSQL takes one of them, and writes it the same.
    ['America/New_York', '2024-11-03 01:30:00', false],
    ['Europe/Berlin', '2024-03-31 02:00:00', true],
    ['Europe/Berlin', '2024-03-31 02:30:00+01', false],
    ['Europe/Berlin', '2024-07-01 02:30:00', false],
    // Half an hour, and a day that was left out as a whole.
    ['Australia/Lord_Howe', '2024-10-06 02:15', true],
    ['Australia/Lord_Howe', '2024-10-06 02:30', false],
    ['Pacific/Apia', '2011-12-30 12:00', true],
    ['Asia/Kolkata', '2024-03-31 02:30', false],
    ['Europe/Berlin', 'infinity', false],
  ])('%s %s: %s', (zone, text, expected) => {
    expect(zoneGap(zone)?.(text)).toBe(expected)
  })

  it.each(['UTC', 'Etc/GMT+5', 'GMT', 'no such zone'])('has nothing to say of %s', (zone) => {
    expect(zoneGap(zone)).toBe(null)
  })
})

it.each([
  ['01/02/03', true],
  ['1/2/24 10:00', true],
  ['31.12.24', true],
  ['01/02/2003', false],
  ['2003/02/01', false],
  ['03-02-01', false],
  ['2024-01-02 10:11:12.13', false],
  ['10:11:12.13', false],
])('a date of three short numbers is refused, whose year is not told: %s', (text, refused) => {
  expect(timeObjection(text, 'timestamp', 6) !== null).toBe(refused)
})
