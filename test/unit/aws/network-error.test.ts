import { describe, expect, it } from 'vitest'
import { SluiceError } from '../../../src/core/errors.ts'
import { translateNetworkError } from '../../../src/aws/network-error.ts'

const coded = (code: string): Error => Object.assign(new Error(`message of ${code}`), { code })

describe('translateNetworkError', () => {
  it.each([
    ['ECONNREFUSED', 'SLUICE_UNREACHABLE'],
    ['EHOSTUNREACH', 'SLUICE_UNREACHABLE'],
    ['UND_ERR_CONNECT_TIMEOUT', 'SLUICE_UNREACHABLE'],
    ['EAI_AGAIN', 'SLUICE_UNREACHABLE'],
    ['ENOTFOUND', 'SLUICE_NOT_FOUND'],
    ['ECONNRESET', 'SLUICE_NETWORK'],
    ['EPIPE', 'SLUICE_NETWORK'],
    ['ETIMEDOUT', 'SLUICE_NETWORK'],
    ['UND_ERR_SOCKET', 'SLUICE_NETWORK'],
    ['UND_ERR_BODY_TIMEOUT', 'SLUICE_NETWORK'],
    ['HPE_INVALID_EOF_STATE', 'SLUICE_NETWORK'],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'SLUICE_TLS'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'SLUICE_TLS'],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'SLUICE_TLS'],
    ['EPROTO', 'SLUICE_TLS'],
    ['HPE_INVALID_CONSTANT', 'SLUICE_PROTOCOL'],
    ['WHATEVER', 'SLUICE_INTERNAL'],
  ])('%s is %s', (code, wanted) => {
    const error = translateNetworkError(coded(code), 'http://127.0.0.1:9000/b/k')
    expect(error.code).toBe(wanted)
    expect(error.message).toContain('127.0.0.1:9000')
    expect(error.where.url).toBe('http://127.0.0.1:9000/b/k')
  })

  it("has OpenSSL's reason without its files and numbers", () => {
    const raw = (reason: string): Error =>
      Object.assign(
        new Error(
          `write EPROTO 80DC82E2EB7F0000:error:0A00010B:SSL routines:ssl3_get_record:${reason}:../deps/openssl/ssl3_record.c:350:\n`,
        ),
        { code: 'EPROTO' },
      )
    expect(translateNetworkError(raw('wrong version number'), 'https://h:9000/').message).toBe(
      'no secure connection to h:9000: it does not answer in TLS (wrong version number)',
    )
    expect(translateNetworkError(raw('tlsv1 alert protocol version'), 'https://h/').message).toBe(
      'no secure connection to h: tlsv1 alert protocol version',
    )
  })

  it('looks into one attempt an address, and into causes', () => {
    expect(translateNetworkError(new AggregateError([new Error('x'), coded('ECONNREFUSED')]), 'http://h').code).toBe(
      'SLUICE_UNREACHABLE',
    )
    expect(translateNetworkError(new TypeError('fetch failed', { cause: coded('ECONNRESET') }), 'http://h').code).toBe(
      'SLUICE_NETWORK',
    )
  })

  it('leaves a SluiceError as it is', () => {
    const error = new SluiceError('SLUICE_JSON', 'x')
    expect(translateNetworkError(error, 'http://h')).toBe(error)
  })

  it('holds no secret of the URL', () => {
    const error = translateNetworkError(coded('ECONNREFUSED'), 'https://user:pass@h/x?X-Amz-Signature=abcdef')
    expect(JSON.stringify([error.message, error.where])).not.toMatch(/pass|abcdef/)
  })
})
