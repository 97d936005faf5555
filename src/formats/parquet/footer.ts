/** Magic bytes at both ends of a file (Parquet format, README.md, "File format"). */
export const MAGIC = new Uint8Array([0x50, 0x41, 0x52, 0x31])
/** Length of the footer (four bytes) and magic. */
export const TAIL_BYTES = 8

/** The footer of a whole file in memory, without its length and the magic bytes. */
export function footerOf(file: Uint8Array): Uint8Array {
  return file.subarray(footerStart(file), file.byteLength - TAIL_BYTES)
}

/** What lies between the magic bytes and the footer of a whole file in memory. */
export function fileBody(file: Uint8Array): Uint8Array {
  return file.subarray(MAGIC.byteLength, footerStart(file))
}

function footerStart(file: Uint8Array): number {
  const tail = file.byteLength - TAIL_BYTES
  return tail - new DataView(file.buffer, file.byteOffset).getUint32(tail, true)
}

/** A footer with its length and the magic bytes behind it: how a file ends. */
export function fileEnd(footer: Uint8Array): Uint8Array {
  const end = new Uint8Array(footer.byteLength + TAIL_BYTES)
  end.set(footer)
  new DataView(end.buffer).setUint32(footer.byteLength, footer.byteLength, true)
  end.set(MAGIC, footer.byteLength + 4)
  return end
}
