import { describe, expect, it } from 'vitest'
import { parseTarget, redirected } from '../../../../src/stores/http/target.ts'

describe('HTTP targets', () => {
  it('never follows from https to http', () => {
    const from = parseTarget('https://host/a')
    expect(() => redirected(from, 'http://host/a', 'https://host/a')).toThrow(
      expect.objectContaining({ code: 'SLUICE_USAGE', where: { url: 'https://host/a' } }),
    )
    expect(redirected(from, 'https://other/b', '').url.href).toBe('https://other/b')
    expect(redirected(parseTarget('http://host/a'), 'https://host/b', '').url.href).toBe('https://host/b')
  })

  it('shows no secret of a refused redirect', () => {
    const follow = (): unknown =>
      redirected(parseTarget('https://host/a'), 'http://u:secret@host/?token=secret', 'https://host/a')
    expect(follow).toThrow(expect.objectContaining({ message: expect.not.stringContaining('secret') as string }))
  })

  it('says where a redirect leads that is not followed, without its path', () => {
    const from = parseTarget('https://host/a')
    const message = (location: string | undefined): unknown => {
      try {
        return redirected(from, location, 'https://host/a')
      } catch (error) {
        return error instanceof Error ? error.message : error
      }
    }
    expect(message(undefined)).toBe('the server redirects without saying where to')
    expect(message('ftp://me:secret@other/secret')).toBe(
      'the server redirects to what is no http or https URL (ftp://other)',
    )
    expect(message('file:///etc/secret')).toBe('the server redirects to what is no http or https URL (file://)')
    expect(message('http://')).toBe('the server redirects to what is no http or https URL (http://)')
  })

  it('keeps credentials within the origin only', () => {
    const from = parseTarget('https://me:pw@host/a')
    expect(from.authorization).toBe(`Basic ${Buffer.from('me:pw').toString('base64')}`)
    expect(from.url.href).toBe('https://host/a')
    expect(redirected(from, '/b', '').authorization).toBe(from.authorization)
    expect(redirected(from, 'https://host:8443/b', '').authorization).toBeNull()
    expect(redirected(from, 'https://you:pw@other/b', '').authorization).toBe(
      `Basic ${Buffer.from('you:pw').toString('base64')}`,
    )
  })

  it('takes user names without a password, with a percent sign, and leaves the fragment out', () => {
    expect(parseTarget('http://100%25@host/a#part')).toMatchObject({
      url: { href: 'http://host/a' },
      authorization: `Basic ${Buffer.from('100%:').toString('base64')}`,
    })
  })
})
