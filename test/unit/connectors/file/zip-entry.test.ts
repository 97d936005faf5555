import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { afterAll, expect, it } from 'vitest'
import { cat } from '../../../../src/api/cat.ts'
import { buildZip } from '../../compression/build-zip.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-entry-'))
afterAll(() => rmSync(folder, { recursive: true }))

it.each([
  ['a program that unpacks itself', Buffer.from('#!/bin/sh\nexec unzip "$0"\n'), 'id\n1\n'],
  ['plain text by the name of a zip', null, 'id\n2\n'],
])('%s', async (_, before, rows) => {
  const zip = buildZip([{ name: 'a.csv', data: Buffer.from(rows) }])
  writeFileSync(join(folder, 'a.zip'), before === null ? rows : Buffer.concat([before, zip]))
  const stdout = new PassThrough()
  const printed = text(stdout)
  await cat(join(folder, 'a.zip'), { options: {}, env: {}, stdout }).finally(() => stdout.end())
  expect(await printed).toBe(rows)
})
