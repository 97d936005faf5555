/** A column of a table for people. */
export interface TableColumn {
  readonly title: string
  readonly right?: boolean
}

/** Columns as wide as their widest value, two blanks between, each value cut at `most` characters; no blanks at line ends. */
export function renderTable(
  columns: readonly TableColumn[],
  rows: readonly (readonly string[])[],
  most = 60,
): string[] {
  const shown = [
    columns.map((column) => column.title),
    ...rows.map((row) => row.map((value) => cut(printable(value), most))),
  ]
  const widths = columns.map((_, i) => Math.max(...shown.map((row) => row[i]?.length ?? 0)))
  return shown.map((row) =>
    columns
      .map((column, i) =>
        column.right === true ? (row[i] ?? '').padStart(widths[i] ?? 0) : (row[i] ?? '').padEnd(widths[i] ?? 0),
      )
      .join('  ')
      .trimEnd(),
  )
}

function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`
}

/** Control characters of data never reach a terminal as they are. */
export function printable(text: string): string {
  // eslint-disable-next-line no-control-regex
  return text.replace(/[\u0000-\u001f\u007f-\u009f]/g, (character) => {
    const named: Readonly<Record<string, string>> = { '\n': String.raw`\n`, '\r': String.raw`\r`, '\t': String.raw`\t` }
    return named[character] ?? String.raw`\x${(character.codePointAt(0) ?? 0).toString(16).padStart(2, '0')}`
  })
}

/** Lines as part of something that has a title. */
export function indent(lines: readonly string[]): string[] {
  return lines.map((line) => `  ${line}`)
}
