import { readFileSync, statSync } from 'node:fs'

/** What a line of a password file is compared with. `host` is as named by the user; a socket folder at its default counts as localhost. */
export interface PasswordQuery {
  readonly host: string
  readonly port: number
  readonly database: string
  readonly user: string
}

export interface PasswordLookup {
  readonly password: string | null
  /** Why a file that is there was passed over, for a warning or a hint; holds no secret. */
  readonly problem: string | null
}

/**
 * The password of the first line `host:port:database:user:password` that fits (PostgreSQL documentation, "The Password File"):
 * `*` fits anything, a backslash escapes `:` and itself, lines that begin with `#` are comments. A file that others may read is
 * passed over, as libpq does. A file that is not there is no problem.
 */
export function lookUpPassword(path: string, query: PasswordQuery): PasswordLookup {
  const text = readPrivateFile(path)
  if (text.content === null) return { password: null, problem: text.problem }
  for (const line of text.content.split(/\r?\n/)) {
    if (line.startsWith('#')) continue
    const fields = splitLine(line)
    if (fields === null) continue
    const [host, port, database, user, password] = fields
    const fits =
      (host === '*' || host === query.host) &&
      (port === '*' || port === String(query.port)) &&
      (database === '*' || database === query.database) &&
      (user === '*' || user === query.user)
    if (fits && password) return { password, problem: null }
  }
  return { password: null, problem: null }
}

function readPrivateFile(path: string): { content: string | null; problem: string | null } {
  try {
    const info = statSync(path)
    if (!info.isFile()) return { content: null, problem: `password file ${path} is no plain file` }
    if (process.platform !== 'win32' && (info.mode & 0o077) !== 0) {
      return { content: null, problem: `password file ${path} is passed over since others may read it: chmod 0600 it` }
    }
    return { content: readFileSync(path, 'utf8'), problem: null }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return {
      content: null,
      problem: code === 'ENOENT' || code === 'ENOTDIR' ? null : `password file ${path} can't be read (${code})`,
    }
  }
}

/** The five fields without their escapes; null for a line with fewer. The password may hold further colons unescaped. */
function splitLine(line: string): [string, string, string, string, string] | null {
  const fields: string[] = ['']
  for (let i = 0; i < line.length; i += 1) {
    const character = line[i] ?? ''
    const last = fields.length - 1
    if (character === '\\' && i + 1 < line.length) {
      i += 1
      fields[last] += line[i] ?? ''
    } else if (character === ':' && fields.length < 5) fields.push('')
    else fields[last] += character
  }
  const [host, port, database, user, password] = fields
  if (
    host === undefined ||
    port === undefined ||
    database === undefined ||
    user === undefined ||
    password === undefined
  )
    return null
  return [host, port, database, user, password]
}
