/** Endings that promise what is never written. */
const PROMISES: Readonly<Record<string, string>> = {
  xz: 'compressed by xz',
  lzma: 'compressed by lzma',
  lz4: 'compressed by lz4',
  br: 'compressed by brotli',
  sz: 'compressed by snappy',
  z: 'compressed by compress',
  '7z': 'a 7z archive',
  rar: 'a RAR archive',
  tar: 'a tar archive',
  tgz: 'a tar archive',
  xls: 'an Excel file',
  xlsx: 'an Excel file',
  ods: 'a spreadsheet',
  avro: 'Avro',
  orc: 'ORC',
}

/** What to warn of where a file gets a name by which others take it for something else; null where the name fits. */
export function misleadingName(name: string, url: string): string | null {
  const ending = /\.([^.]+)$/.exec(name)?.[1]?.toLowerCase() ?? ''
  const promised = Object.hasOwn(PROMISES, ending) ? PROMISES[ending] : undefined
  return promised === undefined ? null : `${url} will not be ${promised}, as its name says: sluice writes no such files`
}
