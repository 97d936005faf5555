import { readFile, readdir } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { chooseCommand } from '../../src/cli/choose-command.ts'
import { COMMANDS } from '../../src/cli/command-table.ts'
import { checkOperands, parseFlags } from '../../src/cli/parse-flags.ts'

const root = new URL('../../', import.meta.url)

/** Command lines of code blocks, with or without a prompt, and of `code` in the text; comments behind them are cut. */
function commandLines(text: string): string[] {
  const blocks = [...text.matchAll(/```(?:sh|text|console)\n([\s\S]*?)```/g)].flatMap(([, block = '']) =>
    block.replace(/ \\\n\s*/g, ' ').split('\n'),
  )
  return blocks
    .map((line) =>
      line
        .replace(/^\$ /, '')
        .replace(/\s+#.*$/, '')
        .trim(),
    )
    .filter((line) => line.startsWith('sluice '))
}

/** Words as a shell takes them apart, for the single quotes that examples use. */
function words(line: string): string[] {
  return [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '')
}

function check(line: string): void {
  const { spec, rest } = chooseCommand(words(line).slice(1))
  if (spec === null) throw new Error(`no command: ${line}`)
  checkOperands(spec, parseFlags(spec, rest).operands)
}

describe('what documents and help tell to type', () => {
  it('is understood as it stands there', async () => {
    const docs = (await readdir(new URL('docs/', root)))
      .filter((name) => name.endsWith('.md'))
      .map((name) => `docs/${name}`)
    const texts = await Promise.all(
      ['README.md', 'ARCHITECTURE.md', ...docs].map((name) => readFile(new URL(name, root), 'utf8')),
    )
    const lines = texts.flatMap(commandLines)
    expect(lines.length).toBeGreaterThan(5)
    for (const line of lines) expect(() => check(line), line).not.toThrow()
  })

  it('names npm scripts that exist', async () => {
    const { scripts } = JSON.parse(await readFile(new URL('package.json', root), 'utf8')) as {
      scripts: Record<string, string>
    }
    const readme = await readFile(new URL('README.md', root), 'utf8')
    const named = [...readme.matchAll(/npm (?:run )?(demo|test|build|bench|dev|check)\b/g)].map(([, name = '']) => name)
    expect(new Set(named)).toEqual(new Set(['demo', 'test', 'build', 'bench']))
    for (const name of named) expect(Object.keys(scripts)).toContain(name)
  })

  it('has three examples for each command, each understood', () => {
    for (const spec of COMMANDS) {
      const examples = spec.examples.map((example) => example.command)
      for (const line of examples)
        expect(() => check(line.slice(line.indexOf('sluice ')).replace(/ [|>].*$|\)$/, '')), line).not.toThrow()
    }
  })
})
