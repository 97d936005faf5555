/** Smallest chunk that is handed on, in bytes, save the last: smaller ones cost more to deal than to copy. */
const LEAST_CHUNK_BYTES = 64 * 1024

/** Joins small chunks until there are LEAST_CHUNK_BYTES; chunks that are large already are not copied. */
export async function* joinSmallChunks(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  let small: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of chunks) {
    if (bytes === 0 && chunk.byteLength >= LEAST_CHUNK_BYTES) {
      yield chunk
      continue
    }
    small.push(chunk)
    bytes += chunk.byteLength
    if (bytes < LEAST_CHUNK_BYTES) continue
    yield Buffer.concat(small, bytes)
    small = []
    bytes = 0
  }
  if (bytes > 0) yield Buffer.concat(small, bytes)
}
