import { describe, expect, it } from 'vitest'
import { type CommandName, findCommand } from '../../../src/cli/command-table.ts'
import { checkOperands, parseFlags } from '../../../src/cli/parse-flags.ts'
import { SluiceError } from '../../../src/core/errors.ts'

function spec(name: CommandName) {
  const found = findCommand(name)
  if (found === undefined) throw new Error(name)
  return found
}

const parse = (name: CommandName, ...words: string[]) => {
  const { operands, values } = parseFlags(spec(name), words)
  return { operands, values: Object.fromEntries(values) }
}

const error = (name: CommandName, ...words: string[]): SluiceError => {
  try {
    checkOperands(spec(name), parseFlags(spec(name), words).operands)
  } catch (thrown) {
    if (thrown instanceof SluiceError) return thrown
    throw thrown
  }
  throw new Error('no error')
}

describe('parseFlags', () => {
  it('reads values, switches, negations and short flags anywhere among the operands', () => {
    const line = parse('copy', '-qv', 'a.csv', '--delimiter=;', '--create', '-', '--no-header', '--part-size', '8MiB')
    expect(line.operands).toEqual(['a.csv', '-'])
    expect(line.values).toEqual({
      quiet: true,
      verbose: true,
      delimiter: ';',
      create: true,
      header: false,
      partSize: 8 * 1024 * 1024,
    })
  })

  it('has nothing for what was not typed', () => {
    expect(parse('copy', 'a', 'b').values).toEqual({})
  })

  it('keys negated flags by what they deny', () => {
    expect(parse('copy', 'a', 'b', '--no-glob', '--no-sign-request', '--no-color').values).toEqual({
      glob: false,
      signRequest: false,
      color: false,
    })
  })

  it('joins repeated flags, and takes values that look like flags', () => {
    expect(parse('copy', 'a', 'b', '--null', 'NA', '--null', '-', '--null', '--x').values).toEqual({
      null: ['NA', '-', '--x'],
    })
    expect(parse('copy', 'a', 'b', '--rename', 'a=b,c=d', '--rename', 'e=f').values).toEqual({
      rename: ['a=b', 'c=d', 'e=f'],
    })
  })

  it('takes everything after -- as operands', () => {
    expect(parse('copy', '--', '--odd.csv', 'b').operands).toEqual(['--odd.csv', 'b'])
  })

  it('names the nearest flag for an unknown one', () => {
    expect(error('copy', 'a', 'b', '--delimter', ';')).toMatchObject({
      code: 'SLUICE_USAGE',
      message: 'unknown flag --delimter; did you mean --delimiter?',
    })
    expect(error('copy', 'a', 'b', '--delimter=;').message).toContain('--delimiter?')
    expect(error('copy', 'a', 'b', '--xyzzy').message).toBe('unknown flag --xyzzy')
    expect(error('copy', 'a', 'b', '-x').message).toBe('unknown flag -x')
  })

  it('refuses flags that are not built by name', () => {
    expect(error('copy', 'a', 'b', '--reject-limit', '5')).toMatchObject({
      code: 'SLUICE_NOT_YET',
      message: '--reject-limit is not built yet',
    })
    expect(error('copy', 'a', 'b', '--mode', 'replace')).toMatchObject({ code: 'SLUICE_NOT_YET' })
    expect(error('inspect', 'a', '--job', 'x')).toMatchObject({ code: 'SLUICE_NOT_YET' })
  })

  it('says to which command a flag belongs', () => {
    expect(error('inspect', 'a', '--part-size', '8MiB')).toMatchObject({
      code: 'SLUICE_USAGE',
      hint: 'it belongs to copy, plan',
    })
  })

  it('refuses a value for a switch, and a missing value', () => {
    expect(error('copy', 'a', 'b', '--create=yes').message).toBe('--create takes no value')
    expect(error('copy', 'a', 'b', '--delimiter').message).toContain('--delimiter')
  })

  it('counts operands', () => {
    expect(error('copy').message).toBe('copy needs SOURCE and SINK')
    expect(error('copy', 'a').message).toBe('copy needs SINK')
    expect(error('copy', 'a', 'b', 'c')).toMatchObject({
      message: 'copy takes SOURCE and SINK only, and there is more: c',
    })
    expect(error('jobs', 'a').message).toContain('no argument')
  })
})
