import { SluiceError } from '../core/errors.ts'

/** Bytes of each unit that a size may have (cli.md): SI names are powers of 1000, IEC names powers of 1024. */
const SIZE_UNITS: Readonly<Record<string, number>> = {
  b: 1,
  kb: 1e3,
  kib: 1024,
  mb: 1e6,
  mib: 1024 ** 2,
  gb: 1e9,
  gib: 1024 ** 3,
}

/** Milliseconds of each unit that a duration may have (cli.md). */
const DURATION_UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

/**
 * "8MiB" → 8388608. A bare number is bytes; letters' case does not matter; the result is a whole number of bytes.
 *
 * @throws SLUICE_USAGE
 */
export function parseSize(text: string, flag: string): number {
  const match = /^(\d+(?:\.\d+)?)\s*([a-z]*)$/i.exec(text.trim())
  const unit = SIZE_UNITS[(match?.[2] || 'b').toLowerCase()]
  if (match === null || unit === undefined) {
    throw new SluiceError('SLUICE_USAGE', `--${flag} ${text}: not a size`, {
      hint: 'a number with B, KB, KiB, MB, MiB, GB or GiB, e.g. 64MiB',
    })
  }
  return Math.round(Number(match[1]) * unit)
}

/**
 * "5m" → 300000 milliseconds. The unit is needed, except for 0.
 *
 * @throws SLUICE_USAGE
 */
export function parseDuration(text: string, flag: string): number {
  const match = /^(\d+(?:\.\d+)?)\s*([a-z]*)$/i.exec(text.trim())
  const amount = Number(match?.[1])
  const unit = amount === 0 && match?.[2] === '' ? 0 : DURATION_UNITS[(match?.[2] ?? '').toLowerCase()]
  if (match === null || unit === undefined) {
    throw new SluiceError('SLUICE_USAGE', `--${flag} ${text}: not a duration`, {
      hint: 'a number with ms, s, m or h, e.g. 90s',
    })
  }
  return Math.round(amount * unit)
}

/** 1234567 → "1,234,567". */
export function formatCount(count: number): string {
  return Math.round(count)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, ',')
}

/** 208888910 → "199.2 MiB". */
export function formatBytes(bytes: number): string {
  const names = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']
  let amount = bytes
  let unit = 0
  while (amount >= 1024 && unit < names.length - 1) {
    amount /= 1024
    unit += 1
  }
  const digits = unit === 0 || amount >= 1000 ? 0 : 1
  return `${amount.toFixed(digits)} ${names[unit] ?? 'B'}`
}

/** 1234567 → "1.2M", 950 → "950": for columns that must stay narrow. */
export function formatShortCount(count: number): string {
  if (count < 1000) return String(Math.round(count))
  if (count < 999_500) return `${(count / 1e3).toFixed(count < 9950 ? 1 : 0)}k`
  if (count < 999_500_000) return `${(count / 1e6).toFixed(count < 9_950_000 ? 1 : 0)}M`
  return `${(count / 1e9).toFixed(1)}G`
}

/** 61500 → "1m01s", 950 → "0.95s"; whole seconds from ten seconds on. */
export function formatDuration(ms: number): string {
  if (ms < 9_950) return `${(ms / 1000).toFixed(ms < 995 ? 2 : 1)}s`
  const seconds = Math.round(ms / 1000)
  if (seconds < 60) return `${seconds}s`
  const two = (n: number): string => String(n).padStart(2, '0')
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m${two(seconds % 60)}s`
  return `${Math.floor(seconds / 3600)}h${two(Math.floor((seconds % 3600) / 60))}m`
}
