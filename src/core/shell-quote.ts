/** A command that a POSIX shell reads back as exactly these words. */
export function shellQuote(words: readonly string[]): string {
  return words.map(quoteWord).join(' ')
}

function quoteWord(word: string): string {
  if (/^[A-Za-z0-9_@%+:,./-]+(=[A-Za-z0-9_@%+:,./-]*)?$/.test(word)) return word
  return `'${word.replaceAll("'", String.raw`'\''`)}'`
}
