/** What the decoding thread is asked: to take a file of one row group, then for its batches, one after the other. */
export type DecodeRequest =
  { readonly kind: 'open'; readonly file: Uint8Array; readonly batchRows: number } | { readonly kind: 'next' }

/** A batch is an Arrow IPC stream; null behind the last. `wasmBytes`: the thread's WebAssembly memory. */
export type DecodeAnswer =
  | { readonly kind: 'opened'; readonly wasmBytes: number }
  | { readonly kind: 'batch'; readonly stream: Uint8Array | null; readonly wasmBytes: number }
  | { readonly kind: 'failed'; readonly error: string }
