import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { screen } from '../../../../src/formats/csv/screen.ts'

const rules = { delimiter: 44, quote: 34, doubled: true, crlf: false, blankLines: false }

/** What `screen` promises, byte by byte. */
// oxlint-disable-next-line complexity -- plain on purpose: it is what the kernel is held against
function judge(text: string, crlf: boolean): { lines: number; records: number; clean: boolean } {
  let [lines, records, clean, inside] = [0, 0, true, false]
  for (let i = 0; i < text.length; i += 1) {
    const [before, char, after] = [text[i - 1] ?? '\n', text[i], text[i + 1] ?? 'a']
    if (char === '\n') lines += 1
    if (char === '"' && !inside) {
      inside = true
      if (!'\n,"'.includes(before)) clean = false
      if (before === '"' && !closedAt(text, i - 1)) clean = false
    } else if (char === '"') {
      inside = false
      if (!'\r\n,"'.includes(after)) clean = false
    } else if (!inside && char === '\n') {
      records += 1
      if (before === '\n' && (i === 0 || endsRecord(text, i - 1))) clean = false
      if (crlf && before !== '\r') clean = false
    } else if (!inside && char === '\r') {
      if (!crlf || after !== '\n') clean = false
      if (i === 0 || (before === '\n' && endsRecord(text, i - 1))) clean = false
    }
  }
  return { lines, records, clean: clean && !inside }
}

function closedAt(text: string, at: number): boolean {
  return (text.slice(0, at + 1).match(/"/g) ?? []).length % 2 === 0
}

function endsRecord(text: string, at: number): boolean {
  return (text.slice(0, at).match(/"/g) ?? []).length % 2 === 0
}

describe('screen', () => {
  it('counts records and lines, and tells blank lines, mixed line ends and stray quotes, wherever they stand', () => {
    const piece = fc.constantFrom('a', 'bc', ',', '"', '""', '\n', '\r\n', '\r', '"x\ny"', 'x'.repeat(61))
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 80 }), fc.boolean(), (pieces, crlf) => {
        const text = `${pieces.join('')}\n`
        const { lines, records, clean } = screen(Buffer.from(text), { ...rules, crlf })
        expect({ lines, records, clean }).toEqual(judge(text, crlf))
      }),
      { numRuns: 500 },
    )
  })

  it('carries its state over slices of 64 KiB', () => {
    const row = '"a ""b""\r\n,",2\r\n'
    const text = row.repeat(20_000)
    expect(screen(Buffer.from(text), { ...rules, crlf: true })).toEqual({
      records: 20_000,
      lines: 40_000,
      clean: true,
      hasNul: false,
      hasBackslash: false,
      isAscii: true,
    })
    const spoilt = `${text.slice(0, 200_000)}x"y${text.slice(200_000)}`
    expect(screen(Buffer.from(spoilt), { ...rules, crlf: true }).clean).toBe(false)
  })

  it('tells NULs, backslashes and bytes above 0x7F, in the last byte as in the first', () => {
    const line = `${'a'.repeat(99)}\n`
    const plain = { ...rules, quote: -1 }
    expect(screen(Buffer.from(line), plain)).toMatchObject({
      hasNul: false,
      hasBackslash: false,
      isAscii: true,
      clean: true,
    })
    for (const at of [0, 63, 64, 98]) {
      const put = (char: string): Buffer => Buffer.from(line.slice(0, at) + char + line.slice(at + 1))
      expect(screen(put('\0'), plain).hasNul).toBe(true)
      expect(screen(put('\\'), plain).hasBackslash).toBe(true)
      expect(screen(put('ü'), plain).isAscii).toBe(false)
    }
  })

  it('lets blank lines be where they are rows', () => {
    expect(screen(Buffer.from('a\n\nb\n'), { ...rules, blankLines: true })).toMatchObject({ records: 3, clean: true })
    expect(screen(Buffer.from('\na\n'), rules).clean).toBe(false)
  })
})
