import { kernels } from '../../core/wasm-kernel.ts'
import { SCREEN_KERNEL } from './screen-kernel.ts'

/** What a block of whole records looks like. */
export interface Screening {
  /** Records, blank ones included. */
  readonly records: number
  /** Line ends, those between quotes included. */
  readonly lines: number
  /** False: something is there that COPY might read otherwise than we do, and only parsing tells. */
  readonly clean: boolean
  readonly hasNul: boolean
  readonly hasBackslash: boolean
  readonly isAscii: boolean
}

export interface ScreenRules {
  readonly delimiter: number
  /** -1: the block has no quote, or quotes mean nothing. */
  readonly quote: number
  /** Whether two quotes within quotes are one. */
  readonly doubled: boolean
  /** Line ends that the block ought to have. */
  readonly crlf: boolean
  /** Whether an empty line is a record: in a file of one column. */
  readonly blankLines: boolean
}

/** Bytes that are looked at in one go: they stay in the processor's cache between being copied and being looked at. */
const SLICE_BYTES = 64 * 1024
/** Fills up the last 64 bytes: a byte that means nothing in CSV. */
const PADDING = 0x61

/** What screen-kernel.wat exports; a unit test holds the two together. */
interface Kernel {
  readonly memory: { readonly buffer: ArrayBuffer }
  begin(quote: number, delimiter: number, doubled: number, crlf: number): void
  feed(end: number): void
  lines(): number
  records(): number
  flags(): number
}

const newKernel = kernels<Kernel>(SCREEN_KERNEL)
let loaded: { readonly kernel: Kernel; readonly memory: Uint8Array } | null = null

/** Instantiated when it is first needed; its memory is 128 KiB. */
function load(): { readonly kernel: Kernel; readonly memory: Uint8Array } {
  if (loaded === null) {
    const kernel = newKernel()
    loaded = { kernel, memory: new Uint8Array(kernel.memory.buffer) }
  }
  return loaded
}

/**
 * Looks at a block of whole records: how many they are, and whether line ends and quotes are all as they should be. 64 bytes at a time by
 * WebAssembly's vector instructions, which every Node from 16.4 on has.
 */
export function screen(bytes: Uint8Array, rules: ScreenRules): Screening {
  const { kernel, memory } = load()
  kernel.begin(rules.quote, rules.delimiter, rules.doubled ? 1 : 0, rules.crlf ? 1 : 0)
  for (let at = 0; at < bytes.byteLength; at += SLICE_BYTES) {
    const slice = bytes.byteLength - at <= SLICE_BYTES && at === 0 ? bytes : bytes.subarray(at, at + SLICE_BYTES)
    memory.set(slice)
    const end = (slice.byteLength + 63) & ~63
    if (end !== slice.byteLength) memory.fill(PADDING, slice.byteLength, end)
    kernel.feed(end)
  }
  const flags = kernel.flags()
  return {
    records: kernel.records(),
    lines: kernel.lines(),
    clean: (flags & 1) === 0 && (rules.blankLines || (flags & 2) === 0),
    hasNul: (flags & 4) !== 0,
    hasBackslash: (flags & 8) !== 0,
    isAscii: (flags & 16) === 0,
  }
}
