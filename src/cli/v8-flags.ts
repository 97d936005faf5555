import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'

/**
 * Buffers on their way count as heap, of which there is little else: by default V8 would collect every few MiB of them. Measured on a load
 * of 208 MB into PostgreSQL: at 1000 0.26 s of 1.78 s of CPU less than by default; at 250 0.08 s more than at 1000, 25 MiB less, and CSV into DynamoDB 70 MiB less.
 */
export function collectLessOften(): void {
  setFlagsFromString('--heap-growing-percent=250')
}

/**
 * A `--replace` like `/(a+)+$/` takes for ever on some values, and no signal gets through meanwhile: past 50,000 steps back V8 goes on with its other engine, which
 * takes none (for all but back references and looking around; v8.dev/blog/non-backtracking-regexp).
 */
export function boundRegexes(): void {
  setFlagsFromString('--enable-experimental-regexp-engine-on-excessive-backtracks')
}

/** How long a job is short; ms. */
const SHORT_MS = 4000
/** Of V8 11, how much of a function runs before its compilation is thought of, by default. */
const USUAL_BUDGET = 67_584

/**
 * For short loads of files into PostgreSQL, which hand blocks of bytes on: little of their JavaScript runs often enough to be worth its compilation, which took a quarter of
 * their CPU (208 MB: 1.47 s by default, 1.13 s so; 2.6 and 2.4 s over TLS). One that turns out to be long is compiled as usual. Only for the V8 of
 * Node 20: later ones compile less by themselves. Other jobs have nothing of it, or are slower
 * (CSV into DynamoDB by a quarter).
 */
export function compileLess(): void {
  if (!process.versions.v8.startsWith('11.')) return
  setFlagsFromString('--interrupt-budget=500000')
  setTimeout(() => setFlagsFromString(`--interrupt-budget=${USUAL_BUDGET}`), SHORT_MS).unref()
}

/** Young generation that is enough for jobs that hand bytes on, which grew to 32 MiB in the first minute of a load; bytes. */
const MOST_YOUNG_BYTES = 8 * 1024 * 1024
const LOOK_EVERY_MS = 100

/** For jobs that hand bytes on and make few objects of them: those are collected in the same memory from the first second to the last. */
export function keepYoungSmall(): void {
  const timer = setInterval(() => {
    const young = getHeapSpaceStatistics().find((space) => space.space_name === 'new_space')
    if ((young?.space_size ?? 0) < MOST_YOUNG_BYTES) return
    clearInterval(timer)
    setFlagsFromString('--semi-space-growth-factor=1')
  }, LOOK_EVERY_MS)
  timer.unref()
}
