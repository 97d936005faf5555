import { resume, show } from '../../index.ts'
import type { RunCommand } from '../context.ts'
import { runJob } from '../run-job.ts'

/** `sluice resume JOB`. */
export const run: RunCommand = async (context) => {
  const { operands, env, stateDir } = context
  const [jobId = ''] = operands
  const { sink } = await show(stateDir, jobId)
  const toStdout = sink === '-'
  return runJob(context, toStdout, (watch) =>
    resume({ ...watch, jobId, stateDir, env, stdout: toStdout ? process.stdout : undefined }),
  )
}
