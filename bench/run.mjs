// `npm run bench -- NAME [ROUNDS]`: one bench, or `all`. What it finds goes into bench/results/NAME.md, and all of those into bench/RESULTS.md.
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { machine } from './race.mjs'
import { stopAll } from './services.mjs'

const here = (name) => fileURLToPath(new URL(name, import.meta.url))
const NAMES = {
  load: 'S3 → PostgreSQL',
  unload: 'PostgreSQL → S3',
  parts: 'Parts in flight while they are made',
  dynamodb: 'CSV → DynamoDB',
  zip: 'CSV in a zip over HTTP → DynamoDB',
  checks: 'Values that COPY would alter',
  scanner: 'The boundary scanner',
  bytes: 'A file to S3 and back',
  link: 'Parts in flight of a file',
  startup: 'Start-up',
  memory: 'Memory',
  long: 'Memory of a long export',
}

async function bench(name, rounds) {
  process.stderr.write(`${name}\n`)
  try {
    // The scanner's bench stands alone: it is run by hand while the scanner is worked on.
    const text = name === 'scanner' ? scanner() : await (await import(`./${name}.bench.mjs`)).run({ rounds })
    const date = new Date().toISOString().slice(0, 10)
    mkdirSync(here('results'), { recursive: true })
    writeFileSync(
      here(`results/${name}.md`),
      `## ${NAMES[name]}\n\n\`npm run bench -- ${name}\`, ${date}, ${machine()}.\n\n${text}\n`,
    )
    process.stdout.write(`${text}\n`)
  } finally {
    stopAll()
  }
}

function scanner() {
  const done = spawnSync(process.execPath, [here('scanner.bench.mjs')], { encoding: 'utf8' })
  if (done.status !== 0) throw new Error(done.stderr)
  return `\`\`\`\n${done.stdout.trim()}\n\`\`\``
}

function writeResults() {
  const found = readdirSync(here('results')).filter((name) => name.endsWith('.md'))
  const ordered = Object.keys(NAMES)
    .map((name) => `${name}.md`)
    .filter((name) => found.includes(name))
  const intro = readFileSync(here('README.md'), 'utf8')
    .split('\n## ')[0]
    .replace(/^# .*\n/, '')
    .trim()
  writeFileSync(
    here('RESULTS.md'),
    `# Measured\n\n${intro}\n\n${ordered.map((name) => readFileSync(here(`results/${name}`), 'utf8').trim()).join('\n\n')}\n`,
  )
}

const [wanted = '', rounds = '5'] = process.argv.slice(2)
const names = wanted === 'all' ? Object.keys(NAMES) : [wanted]
if (names.some((name) => !Object.hasOwn(NAMES, name))) {
  process.stderr.write(`npm run bench -- NAME [ROUNDS], NAME one of ${Object.keys(NAMES).join(', ')}, all\n`)
  process.exit(2)
}
for (const name of names) await bench(name, Number(rounds))
writeResults()
