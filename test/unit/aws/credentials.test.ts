import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { createCredentialSource, type AwsCredentials } from '../../../src/aws/credentials.ts'
import { findRegion, regionOfProfile } from '../../../src/aws/region.ts'

const KEYS = { AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: 'secret' }
const MINUTE = 60_000

function counting(make: (call: number) => AwsCredentials | Error) {
  const loader = {
    calls: 0,
    load: (): Promise<AwsCredentials> => {
      loader.calls += 1
      const made = make(loader.calls)
      return made instanceof Error ? Promise.reject(made) : Promise.resolve(made)
    },
  }
  return loader
}

describe('credentials', () => {
  it('come from the environment handed in', async () => {
    expect(await createCredentialSource({ env: KEYS }).get()).toEqual({
      accessKeyId: 'id',
      secretAccessKey: 'secret',
      sessionToken: undefined,
    })
    const token = { ...KEYS, AWS_SESSION_TOKEN: 't' }
    expect(await createCredentialSource({ env: token }).get()).toMatchObject({ sessionToken: 't' })
  })

  it('do not come from the process behind the back of what was handed in', async () => {
    const home = mkdtempSync(join(tmpdir(), 'sluice-aws-'))
    const warn = vi.spyOn(console, 'warn')
    try {
      vi.stubEnv('AWS_ACCESS_KEY_ID', 'of-the-process')
      vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'of-the-process')
      vi.stubEnv('AWS_EC2_METADATA_DISABLED', 'true')
      const source = () => createCredentialSource({ env: { HOME: home } })
      await expect(source().get()).rejects.toMatchObject({ code: 'SLUICE_CREDENTIALS' })
      mkdirSync(join(home, '.aws'))
      writeFileSync(
        join(home, '.aws/credentials'),
        '[default]\naws_access_key_id = of-the-file\naws_secret_access_key = s\n[other]\naws_access_key_id = o\naws_secret_access_key = s\n',
      )
      expect(await source().get()).toMatchObject({ accessKeyId: 'of-the-file' })
      const other = createCredentialSource({ env: { HOME: home, AWS_PROFILE: 'other' } })
      expect(await other.get()).toMatchObject({ accessKeyId: 'o' })
      expect(warn).not.toHaveBeenCalled()
    } finally {
      rmSync(home, { recursive: true })
    }
  })

  it('are none without signing', async () => {
    expect(await createCredentialSource({ env: KEYS, signRequest: false }).get()).toBeNull()
  })

  it('come from the profile where one is named, whatever the environment has', async () => {
    const loader = counting(() => ({ accessKeyId: 'p', secretAccessKey: 's' }))
    expect(await createCredentialSource({ env: KEYS, profile: 'x', load: loader.load }).get()).toMatchObject({
      accessKeyId: 'p',
    })
  })

  it.each([{ AWS_ACCESS_KEY_ID: 'id' }, { AWS_SECRET_ACCESS_KEY: 's3cr3t' }])(
    'are refused by half: %j',
    async (env) => {
      await expect(createCredentialSource({ env }).get()).rejects.toMatchObject({ code: 'SLUICE_CREDENTIALS' })
    },
  )

  it('are fetched once, and anew five minutes before they expire', async () => {
    const loader = counting((call) => ({
      accessKeyId: `k${call}`,
      secretAccessKey: 's',
      expiresMs: Date.now() + (call === 1 ? 4 : 60) * MINUTE,
    }))
    const source = createCredentialSource({ env: {}, load: loader.load })
    await Promise.all([source.get(), source.get()])
    expect(loader.calls).toBe(1)
    expect(await source.get()).toMatchObject({ accessKeyId: 'k2' })
    expect(await source.get()).toMatchObject({ accessKeyId: 'k2' })
    source.invalidate()
    expect(await source.get()).toMatchObject({ accessKeyId: 'k3' })
    expect(loader.calls).toBe(3)
  })

  it('stay while they last where they cannot be renewed', async () => {
    const loader = counting((call) =>
      call === 1
        ? { accessKeyId: 'k1', secretAccessKey: 's', expiresMs: Date.now() + 4 * MINUTE }
        : new Error('no network'),
    )
    const source = createCredentialSource({ env: {}, load: loader.load })
    await source.get()
    expect(await source.get()).toMatchObject({ accessKeyId: 'k1' })
  })

  it('missing: says what to do', async () => {
    const loader = counting(() => new Error('Could not load credentials from any providers'))
    const failing = createCredentialSource({ env: {}, profile: 'dev', load: loader.load }).get()
    await expect(failing).rejects.toMatchObject({
      code: 'SLUICE_CREDENTIALS',
      hint: expect.stringContaining('AWS_ACCESS_KEY_ID'),
    })
    await expect(failing).rejects.toThrow(/profile dev/)
  })

  it("come from AWS's own files, by its own chain", async () => {
    const { mkdtemp, rm, writeFile } = await import('node:fs/promises')
    const folder = await mkdtemp('/tmp/sluice-aws-')
    try {
      await writeFile(
        `${folder}/credentials`,
        '[dev]\naws_access_key_id = fileId\naws_secret_access_key = fileSecret\n',
      )
      const env = { AWS_SHARED_CREDENTIALS_FILE: `${folder}/credentials`, AWS_CONFIG_FILE: `${folder}/config` }
      expect(await createCredentialSource({ env, profile: 'dev' }).get()).toMatchObject({
        accessKeyId: 'fileId',
        secretAccessKey: 'fileSecret',
      })
      await expect(createCredentialSource({ env, profile: 'nobody' }).get()).rejects.toMatchObject({
        code: 'SLUICE_CREDENTIALS',
      })
    } finally {
      await rm(folder, { recursive: true })
    }
  })
})

describe('the region', () => {
  const CONFIG = `# comment\n[default]\nregion = eu-west-1\n\n[profile dev]\nsso_session = x\nregion=ap-south-1  # here\n[profile nested]\ns3 =\n  region = wrong\noutput = json\n`

  it.each([
    ['default', 'eu-west-1'],
    ['dev', 'ap-south-1'],
    ['nested', null],
    ['nobody', null],
  ])('of the profile %s is %s', (profile, region) => {
    expect(regionOfProfile(CONFIG, profile)).toBe(region)
  })

  it('is the flag, then AWS_REGION, then AWS_DEFAULT_REGION, then us-east-1', async () => {
    const env = { AWS_REGION: 'a', AWS_DEFAULT_REGION: 'b', AWS_CONFIG_FILE: '/nonexistent' }
    expect(await findRegion({ env, region: 'f' })).toBe('f')
    expect(await findRegion({ env })).toBe('a')
    expect(await findRegion({ env: { ...env, AWS_REGION: '' } })).toBe('b')
    expect(await findRegion({ env: { AWS_CONFIG_FILE: '/nonexistent' } })).toBe('us-east-1')
  })
})
