/** An SQL identifier, always in double quotes, so that neither case nor a reserved word matters. */
export function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** An SQL string constant that means the same under every setting of standard_conforming_strings. */
export function quoteLiteral(text: string): string {
  const doubled = text.replaceAll("'", "''")
  return text.includes('\\') ? ` E'${doubled.replaceAll('\\', '\\\\')}'` : `'${doubled}'`
}

/** `"schema"."name"` for use in statements. */
export function quoteTable(table: { readonly schema: string; readonly name: string }): string {
  return `${quoteIdentifier(table.schema)}.${quoteIdentifier(table.name)}`
}
