import { SluiceError } from '../../core/errors.ts'
import { redactUrl } from '../../core/redact.ts'
import { confirm } from '../confirm.ts'
import type { CommandContext, RunCommand } from '../context.ts'
import { runJob } from '../run-job.ts'
import { standardInputFor } from '../standard-input.ts'
import { compileLess, keepYoungSmall } from '../v8-flags.ts'

/** Ends whose rows become objects on the way: JSON Lines into PostgreSQL took a tenth more CPU with a small young generation. */
const MADE_OF_OBJECTS = /^dynamodb:|\.(jsonl?|ndjson|parquet)(\.\w+)?(\?|$)/i

/** `sluice copy SOURCE SINK`. */
export const run: RunCommand = async (context) => {
  const { operands, options, defaults, own, env, stateDir } = context
  const [source = '', sink = ''] = operands
  checkJobFlags(context)
  if (own.dryRun === true) {
    const plan = await import('./plan.ts')
    return plan.run(context)
  }
  if (options.mode === 'truncate' && options.yes !== true) {
    await confirm({
      about: `--mode truncate deletes every row of ${redactUrl(sink)}`,
      canAsk: source !== '-',
      signal: context.interruption.signal,
    })
  }
  if (/^postgres(ql)?:/.test(sink) && !/^(postgres(ql)?|dynamodb):/.test(source)) compileLess()
  if (![source, sink].some((end) => MADE_OF_OBJECTS.test(end)) && !/^postgres(ql)?:/.test(source)) keepYoungSmall()
  const { copy } = await import('../../index.ts')
  return runJob(context, sink === '-', (watch) =>
    copy({
      ...watch,
      source,
      sink,
      env,
      stateDir,
      defaults,
      options: options.mode === 'truncate' ? { ...options, yes: true } : options,
      jobId: own.jobId,
      resume: own.resume,
      newJob: own.newJob,
      stdin: standardInputFor(source),
      stdout: sink === '-' ? process.stdout : undefined,
    }),
  )
}

function checkJobFlags({ own }: CommandContext): void {
  if (own.resume === true && own.jobId === undefined) {
    throw new SluiceError('SLUICE_USAGE', '--resume needs --job-id', {
      hint: 'sluice jobs lists jobs; sluice resume JOB does the same',
    })
  }
  if (own.resume === true && own.newJob === true) {
    throw new SluiceError('SLUICE_USAGE', '--resume and --new-job contradict each other', {
      hint: 'one goes on with a job, the other starts over',
    })
  }
}
