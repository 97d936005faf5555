import { SluiceError } from '../../../core/errors.ts'

/** One name of a table reference. Names that were not in quotes are matched in lower case first, then exactly as written. */
export interface NamePart {
  readonly name: string
  readonly literal: boolean
}

/** Which table a URL means. Without a schema the search path decides. */
export interface TableReference {
  readonly schema: NamePart | null
  readonly table: NamePart
}

/** The names that a part can stand for, the first that exists counting: SQL's folding, then the exact spelling. */
export function candidates(part: NamePart): readonly string[] {
  const folded = fold(part.name)
  return part.literal || folded === part.name ? [part.name] : [folded, part.name]
}

/** For messages: `public.people`. */
export function formatReference(reference: TableReference): string {
  return reference.schema === null ? reference.table.name : `${reference.schema.name}.${reference.table.name}`
}

/** SQL folds the letters A to Z only (PostgreSQL's downcase_identifier, in a multi-byte encoding). */
function fold(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
}

/**
 * Reads `schema.table` by SQL's rules: a dot parts, double quotes take a name literally, `""` in them is one quote.
 *
 * @throws SLUICE_USAGE
 */
export function parseTableReference(text: string): TableReference {
  const parts: NamePart[] = []
  let rest = text.trim()
  for (;;) {
    const match = /^(?:"((?:[^"]|"")+)"|([^".]+))(\.|$)/.exec(rest)
    if (match === null) throw badReference(text)
    const quoted = match[1]
    parts.push(
      quoted === undefined
        ? { name: match[2] ?? '', literal: false }
        : { name: quoted.replaceAll('""', '"'), literal: true },
    )
    rest = rest.slice(match[0].length)
    if (match[3] === '') break
  }
  const [first, second] = parts
  if (first === undefined || parts.length > 2) throw badReference(text)
  return second === undefined ? { schema: null, table: first } : { schema: first, table: second }
}

function badReference(text: string): SluiceError {
  return new SluiceError('SLUICE_USAGE', `table=${text} is no table name`, {
    hint: 'write table=name, table=schema.name or table="Mixed Case".name; names with dots go into schema=… and table=… apart',
  })
}
