import { basename, dirname } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { intentJson, isTemporaryName, parseIntent, temporaryPath } from '../../../../src/stores/local/temporary-name.ts'

const fileName = fc
  .string({ unit: 'grapheme', minLength: 1, maxLength: 100 })
  .map((text) => text.replaceAll(/[/\0]/g, '_'))
  .filter((text) => text !== '.' && text !== '..')

describe('temporary names', () => {
  it('lie beside any name, are known again, and are never too long', () => {
    fc.assert(
      fc.property(fileName, fc.constantFrom('', '/d', '/d/e f'), (name, folder) => {
        const path = `${folder}/${name}`
        const temporary = temporaryPath(path)
        expect(dirname(temporary)).toBe(dirname(path))
        expect(isTemporaryName(basename(temporary))).toBe(true)
        expect(Buffer.byteLength(basename(temporary))).toBeLessThanOrEqual(255)
        const intent = { store: 'local', path, temporary, identity: '1:2' } as const
        expect(parseIntent(JSON.parse(JSON.stringify(intentJson(intent))))).toEqual(intent)
      }),
    )
  })

  it('are not met by chance', () => {
    expect(temporaryPath('/a/b')).not.toBe(temporaryPath('/a/b'))
    for (const name of [
      '.b.sluice-',
      'b.sluice-0123456789abcdef',
      '.b.sluice-0123456789ABCDEF',
      '.b.sluice-0123456789abcdef~',
    ]) {
      expect(isTemporaryName(name)).toBe(false)
    }
  })

  it.each([null, undefined, 1, 'x', [], {}, { store: 's3', path: '/a/b', temporary: '/a/.b.sluice-0123456789abcdef' }])(
    'are not read from %j',
    (value) => {
      expect(parseIntent(value)).toBeNull()
    },
  )
})
