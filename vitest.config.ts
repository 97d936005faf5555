import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'

/** A project is a folder of test/. Those that need real services share one set of them per run. */
const project = (name: string, o: { services: boolean; include?: string[]; testTimeoutMs: number }) => ({
  test: {
    name,
    include: [`test/${name}/**/*.test.ts`, ...(o.include ?? [])],
    testTimeout: o.testTimeoutMs,
    hookTimeout: 60_000,
    ...(o.services ? { globalSetup: ['test/support/services-setup.ts'] } : {}),
  },
})

export default defineConfig({
  test: {
    // Processes, not threads: tests look at signals, exit codes and memory.
    pool: 'forks',
    // vitest's own default leaves one processor free, which on two means one file after the other, though most of them wait for services.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    execArgv: ['--import', new URL('./test/support/typescript-threads.mjs', import.meta.url).href],
    allowOnly: false,
    passWithNoTests: false,
    restoreMocks: true,
    unstubEnvs: true,
    coverage: { provider: 'v8', include: ['src/**/*.ts'], reportsDirectory: 'coverage' },
    projects: [
      project('unit', { services: false, testTimeoutMs: 20_000 }),
      project('property', { services: false, testTimeoutMs: 60_000 }),
      project('conformance', { services: true, testTimeoutMs: 60_000 }),
      project('integration', { services: true, include: ['test/support/**/*.test.ts'], testTimeoutMs: 60_000 }),
      project('e2e', { services: true, testTimeoutMs: 120_000 }),
    ].map((one) => ({ extends: true as const, ...one })),
  },
})
