// What the benches of CSV → DynamoDB share: the server that only counts, and the commands.
import { spawn } from 'node:child_process'
import { sh } from './race.mjs'
import { freePort, onStop, sluice } from './services.mjs'

export const ENV = {
  ...process.env,
  AWS_ACCESS_KEY_ID: 'bench',
  AWS_SECRET_ACCESS_KEY: 'benchbench',
  AWS_REGION: 'eu-west-1',
}
export const TYPED = '--type latitude=number --type longitude=number'

export async function startNullddb(flags = []) {
  if (process.env.NULLDDB === undefined) throw new Error('NULLDDB names no program')
  const port = await freePort()
  const child = spawn(process.env.NULLDDB, ['-addr', `127.0.0.1:${port}`, ...flags], { stdio: 'ignore' })
  onStop(() => child.kill('SIGKILL'))
  await new Promise((resolve) => setTimeout(resolve, 500))
  const endpoint = `http://127.0.0.1:${port}`
  return { endpoint, counts: () => JSON.parse(sh(`curl -s ${endpoint}/`)) }
}

/** Commands that load `rows` rows, and what checks by the server's count of puts that it has got them all. */
export function loads(folder, rows) {
  let before = null
  return {
    own: (server, more, source) =>
      `AWS_ENDPOINT_URL_DYNAMODB=${server.endpoint} ${sluice()} copy ${source} dynamodb:///Postcodes ${more} --state-dir ${folder}/state --new-job -q`,
    counted: (server) => ({
      before: () => {
        before = server.counts()
      },
      check: () => {
        const puts = server.counts().puts - before.puts
        if (puts !== rows) throw new Error(`${puts} puts for ${rows} rows`)
      },
    }),
    before: () => before,
  }
}
