// Writes docs/errors.md from the table of error codes: npm run build, then node test/support/write-errors-doc.mjs
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const EXIT = { usage: 2, failed: 1, resumable: 4 }

const cell = (text) => text.replaceAll('|', String.raw`\|`)

const row = ([code, rule]) =>
  `| <a id="${code.toLowerCase()}"></a>\`${code}\` | ${cell(rule.meaning)} | ${cell(rule.hint)} | ${rule.retryable ? 'yes' : 'no'} | ${EXIT[rule.before]} | ${EXIT[rule.during]} |`

/** The whole file. */
export function renderErrorsDoc(rules) {
  return `# Error codes

<!-- Made by test/support/write-errors-doc.mjs from src/core/errors.ts: change that, not this. -->

Every error that sluice reports has a code that stays the same from release to release, while messages may be reworded: match the code. In the library it is
\`error.code\` of a \`SluiceError\`; on the command line it stands in brackets behind the message, and in \`error.code\` of \`--json\`.

An error that is tried again is tried for as long as \`--retry-for\` allows without progress; then it ends the job. The exit codes are those of a job that the error
ends before any row was read, and after: 2 means usage or configuration, 1 failed, 4 stopped but resumable (the command to resume is printed). A signal ends with
130 or 143. Where the place that reports an error knows better, it gives a hint of its own.

| code | meaning | what to do | tried again | exit before | exit during |
|---|---|---|---|---|---|
${Object.entries(rules).map(row).join('\n')}
`
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { ERROR_RULES } = await import('../../dist/core/errors.js')
  writeFileSync(new URL('../../docs/errors.md', import.meta.url), renderErrorsDoc(ERROR_RULES))
}
