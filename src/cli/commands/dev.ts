import { once } from 'node:events'
import type { RunCommand } from '../context.ts'
import { DEV_BUCKET } from '../dev/embedded.ts'
import { type DevServices, startDev } from '../dev/start.ts'
import { shellQuote } from '../../core/shell-quote.ts'
import type { Style } from '../style.ts'

/** `sluice dev`: embedded services until a signal, or until the parent that started us with an IPC channel goes away. */
export const run: RunCommand = async ({ own, interruption, outStyle, print, screen }) => {
  const all = own.postgres !== true && own.s3 !== true && own.dynamodb !== true
  const stop = new AbortController()
  if (process.connected) process.once('disconnect', () => stop.abort())
  const signal = AbortSignal.any([interruption.signal, stop.signal])
  const keep = typeof own.keep === 'string' ? own.keep : undefined
  const running = await startDev({
    postgres: all || own.postgres === true,
    s3: all || own.s3 === true,
    dynamodb: all || own.dynamodb === true,
    keep,
    signal,
  })
  try {
    const { services, env } = running
    await print(own.json === true ? `${JSON.stringify({ services, env })}\n` : `${renderDev(running, outStyle)}\n`)
    if (!signal.aborted) await once(signal, 'abort')
  } finally {
    await running.stop()
  }
  screen.print('info', 'stopped')
  return 0
}

/** URLs, what to export, and something to try. */
export function renderDev({ services, env }: Pick<DevServices, 'services' | 'env'>, style: Style): string {
  const width = Math.max(...services.map(({ name }) => name.length))
  const postgres = services.find(({ name }) => name.startsWith('PostgreSQL'))
  const s3 = services.some(({ name }) => name === 'S3')
  const dynamodb = services.some(({ name }) => name === 'DynamoDB')
  const examples = [
    ...(s3 ? [`sluice copy people.csv s3://${DEV_BUCKET}/people.csv`] : []),
    ...(postgres === undefined
      ? []
      : [`sluice copy ${s3 ? `s3://${DEV_BUCKET}/people.csv` : 'people.csv'} '${postgres.url}?table=people' --create`]),
    ...(dynamodb ? ['sluice copy people.csv dynamodb:///People --create-table --partition-key id:N'] : []),
  ]
  return [
    ...services.map(
      ({ name, url }) => `${style.green(name.padEnd(width))}  ${url}${name === 'S3' ? ` (bucket ${DEV_BUCKET})` : ''}`,
    ),
    '',
    style.bold('in another shell'),
    ...Object.entries(env).map(([name, value]) => `  export ${name}=${shellQuote([value])}`),
    '',
    style.bold('then'),
    ...examples.map((example) => `  ${example}`),
    '',
    'Ctrl-C stops it.',
  ].join('\n')
}
