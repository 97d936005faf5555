import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { paceOf, ProgressView, renderBar, renderLine } from '../../../src/cli/progress.ts'
import { dumbTerminal, Screen, type TextSink } from '../../../src/cli/screen.ts'
import { createStyle } from '../../../src/cli/style.ts'
import type { Progress } from '../../../src/core/events.ts'

const MIB = 1024 * 1024
const style = createStyle(false)
const progress = (some: Partial<Progress>): Progress => ({
  rowsRead: 1_250_000,
  rowsWritten: 1_250_000,
  bytesRead: 50 * MIB,
  bytesWritten: 0,
  bytesTotal: 200 * MIB,
  inFlight: 2,
  retries: 0,
  elapsedMs: 1000,
  ...some,
})

class Recorder implements TextSink {
  text = ''
  readonly columns = 100
  readonly isTTY: boolean
  constructor(isTTY: boolean) {
    this.isTTY = isTTY
  }
  write(text: string): void {
    this.text += text
  }
}

describe('paceOf', () => {
  it('is the speed between first and last sample, and the time that is left', () => {
    const pace = paceOf([progress({}), progress({ bytesRead: 100 * MIB, rowsWritten: 2_250_000, elapsedMs: 2000 })])
    expect(pace).toEqual({ bytesPerSecond: 50 * MIB, rowsPerSecond: 1_000_000, leftMs: 2000 })
  })

  it('knows no time left where the total is unknown or nothing moves', () => {
    expect(paceOf([progress({ bytesTotal: null })]).leftMs).toBeNull()
    expect(paceOf([progress({}), progress({ elapsedMs: 2000 })])).toEqual({
      bytesPerSecond: 0,
      rowsPerSecond: 0,
      leftMs: null,
    })
    expect(paceOf([])).toEqual({ bytesPerSecond: null, rowsPerSecond: null, leftMs: null })
  })
})

describe('renderBar', () => {
  const pace = paceOf([progress({})])

  it('shows everything where there is room', () => {
    expect(renderBar(progress({}), pace, { phase: 'copying', width: 120, style })).toBe(
      '█████░░░░░░░░░░░░░░░   25%  1.3M rows  50.0 MiB of 200.0 MiB  50.0 MiB/s  3.0s left  2 in flight  0 retries',
    )
  })

  it('is never wider than the terminal', () => {
    for (let width = 11; width < 130; width += 1) {
      expect(renderBar(progress({ retries: 1 }), pace, { phase: 'finishing', width, style }).length).toBeLessThan(width)
    }
  })

  it('tells the time left on a terminal of 80 columns: the bar is shortened first', () => {
    const line = renderBar(progress({ rowsWritten: 832_000 }), pace, { phase: 'copying', width: 80, style })
    expect(line).toMatch(/^███░{7} {3}25% {2}832k rows {2}50\.0 MiB of 200\.0 MiB {2}\S+ MiB\/s {2}\S+ left/)
  })

  it('has no bar where the total is unknown, and none past the end', () => {
    expect(renderBar(progress({ bytesTotal: null }), pace, { phase: 'copying', width: 120, style })).toMatch(
      /^1\.3M rows {2}50\.0 MiB {2}/,
    )
    expect(renderBar(progress({ bytesTotal: MIB }), pace, { phase: 'copying', width: 120, style })).toMatch(
      /^█{20} {2}100%/,
    )
  })
})

describe('renderLine', () => {
  it('is one line for a log', () => {
    expect(renderLine(progress({ retries: 1 }), paceOf([progress({})]), 'copying')).toBe(
      '1.0s copying, 25%, 1.3M rows, 50.0 MiB of 200.0 MiB, 50.0 MiB/s, 3.0s left, 2 in flight, 1 retry',
    )
  })
})

describe('ProgressView', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  it('draws a bar on a terminal, keeps warnings above it, and takes it away', () => {
    const out = new Recorder(true)
    const view = new ProgressView(new Screen(out, 'info'), style, 'auto')
    view.listen({ kind: 'phase', phase: 'copying' })
    view.listen({ kind: 'progress', progress: progress({}) })
    vi.advanceTimersByTime(100)
    view.listen({ kind: 'warning', message: 'odd' })
    view.stop()
    const bar = out.text.split('\r\u001b[K').filter((piece) => piece.includes('25%'))
    expect(bar).toHaveLength(2)
    expect(out.text).toContain('\r\u001b[Kwarning: odd\n\r\u001b[K█')
    expect(out.text.endsWith('\r\u001b[K')).toBe(true)
  })

  it('prints a line every ten seconds where it is no terminal', () => {
    const out = new Recorder(false)
    const view = new ProgressView(new Screen(out, 'info'), style, 'auto')
    view.listen({ kind: 'progress', progress: progress({}) })
    vi.advanceTimersByTime(9_900)
    expect(out.text).toBe('')
    vi.advanceTimersByTime(20_100)
    expect(out.text.trimEnd().split('\n')).toHaveLength(3)
    view.stop()
    vi.advanceTimersByTime(60_000)
    expect(out.text.trimEnd().split('\n')).toHaveLength(3)
  })

  it('prints lines on a terminal that cannot move its cursor', () => {
    const out = new Recorder(true)
    const view = new ProgressView(new Screen(dumbTerminal(out), 'info'), style, 'auto')
    view.listen({ kind: 'progress', progress: progress({}) })
    vi.advanceTimersByTime(10_000)
    view.stop()
    expect(out.text.split('\n')).toHaveLength(2)
    expect(out.text).not.toContain('\r')
  })

  it('prints JSON lines, progress at most once a second', () => {
    const out = new Recorder(false)
    const view = new ProgressView(new Screen(out, 'info'), style, 'json')
    view.listen({ kind: 'warning', message: 'odd' })
    for (let i = 0; i < 30; i += 1) {
      view.listen({ kind: 'progress', progress: progress({ elapsedMs: i * 100 }) })
      vi.advanceTimersByTime(100)
    }
    vi.advanceTimersByTime(5000)
    view.stop()
    const lines = out.text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { event: string })
    expect(lines.map((line) => line.event)).toEqual(['warning', 'progress', 'progress', 'progress'])
  })

  it('is silent with none, save for warnings', () => {
    const out = new Recorder(true)
    const view = new ProgressView(new Screen(out, 'info'), style, 'none')
    view.listen({ kind: 'progress', progress: progress({}) })
    vi.advanceTimersByTime(60_000)
    expect(out.text).toBe('')
    view.listen({ kind: 'sql', statement: 'CREATE TABLE t ()' })
    expect(out.text).toBe('SQL: CREATE TABLE t ()\n')
    view.stop()
  })
})
