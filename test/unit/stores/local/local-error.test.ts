import { describe, expect, it } from 'vitest'
import { SluiceError } from '../../../../src/core/errors.ts'
import { translateLocalError } from '../../../../src/stores/local/local-error.ts'

describe('local errors', () => {
  it.each([
    ['ENOENT', 'SLUICE_NOT_FOUND'],
    ['ENOTDIR', 'SLUICE_NOT_FOUND'],
    ['EACCES', 'SLUICE_ACCESS_DENIED'],
    ['EPERM', 'SLUICE_ACCESS_DENIED'],
    ['EROFS', 'SLUICE_ACCESS_DENIED'],
    ['EISDIR', 'SLUICE_USAGE'],
    ['ENOSPC', 'SLUICE_DISK_FULL'],
    ['EDQUOT', 'SLUICE_DISK_FULL'],
    ['EEXIST', 'SLUICE_EXISTS'],
    ['EMFILE', 'SLUICE_LOCAL_IO'],
    ['EIO', 'SLUICE_LOCAL_IO'],
  ])('translates %s to %s', (systemCode, code) => {
    const cause = Object.assign(new Error(`${systemCode}: i/o error, read`), { code: systemCode })
    const error = translateLocalError(cause, '/a/b', 12)
    expect(error).toMatchObject({ code, where: { url: '/a/b', byte: 12 }, cause })
    expect(error.message).toContain(systemCode)
    expect(error.hint).not.toBe('')
  })

  it('leaves a SluiceError as it is', () => {
    const error = new SluiceError('SLUICE_USAGE', 'x')
    expect(translateLocalError(error, '/a')).toBe(error)
  })

  it('takes anything thrown', () => {
    expect(translateLocalError('text', '/a')).toMatchObject({ code: 'SLUICE_LOCAL_IO', message: 'text' })
  })
})
