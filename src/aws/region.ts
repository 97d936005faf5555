import { readFile } from 'node:fs/promises'
import type { Environment } from '../core/options.ts'
import { awsFiles } from './credentials.ts'

/** What AWS itself falls back to. */
export const DEFAULT_REGION = 'us-east-1'

/** Flag, AWS_REGION, AWS_DEFAULT_REGION, the profile in AWS's config file, else us-east-1. A missing file is no error. */
export async function findRegion(options: {
  readonly region?: string | undefined
  readonly profile?: string | undefined
  readonly env: Environment
}): Promise<string> {
  const { env } = options
  const said = [options.region, env.AWS_REGION, env.AWS_DEFAULT_REGION].find(
    (region) => region !== undefined && region !== '',
  )
  if (said !== undefined) return said
  const text = await readFile(awsFiles(env).config, 'utf8').catch(() => '')
  return regionOfProfile(text, options.profile ?? env.AWS_PROFILE ?? 'default') ?? DEFAULT_REGION
}

/** The region that a profile names in the text of an AWS config file (`[profile NAME]`, `[default]`). */
export function regionOfProfile(text: string, profile: string): string | null {
  let inside = false
  for (const line of text.split(/\r?\n/)) {
    const section = /^\s*\[\s*(?:profile\s+)?["']?([^\]"']+?)["']?\s*\]/.exec(line)
    if (section !== null) inside = section[1] === profile
    // An indented line belongs to a nested table (`s3 =`), not to the profile.
    const setting = /^region\s*=\s*([^\s#;]+)/.exec(line)
    if (inside && setting?.[1] !== undefined) return setting[1]
  }
  return null
}
