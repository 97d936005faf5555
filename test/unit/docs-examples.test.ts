import { execFileSync } from 'node:child_process'
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

/** `a/{b,c}.ts` is two names. */
function inBraces(name: string): string[] {
  const [whole, choices] = /\{([^}]*)\}/.exec(name) ?? []
  return whole === undefined ? [name] : (choices ?? '').split(',').flatMap((one) => inBraces(name.replace(whole, one)))
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

  it('names files and folders that exist', async () => {
    const tracked = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
      cwd: root,
      encoding: 'utf8',
    }).split('\n')
    const paths = new Set(
      tracked.flatMap((path) => path.split('/').map((_, i, parts) => parts.slice(0, i + 1).join('/'))),
    )
    const isThere = (name: string): boolean => [...paths].some((path) => path === name || path.endsWith(`/${name}`))
    const named: string[] = []
    for (const document of ['ARCHITECTURE.md', 'CONTRIBUTING.md']) {
      const text = await readFile(new URL(document, root), 'utf8')
      const inline = [...text.replace(/```[\s\S]*?```/g, '').matchAll(/`([\w./{},-]+)`/g)].map(([, name = '']) => name)
      const typed = [...text.matchAll(/\btest\/[\w./-]+/g)].map(([name]) => name)
      named.push(...[...inline, ...typed].filter((name) => /[a-z]\/|\.(ts|mjs|wat|md)$/.test(name)).flatMap(inBraces))
    }
    expect(named.length).toBeGreaterThan(80)
    const ours = named.filter((name) => !/NAME|^\.|^dist\//.test(name)).map((name) => name.replace(/\/$/, ''))
    expect(ours.filter((name) => !isThere(name))).toEqual([])
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
