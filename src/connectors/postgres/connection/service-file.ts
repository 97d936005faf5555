import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { SluiceError } from '../../../core/errors.ts'
import { checkParameterNames } from './url-parameters.ts'

/**
 * The parameters that a service name stands for (PostgreSQL documentation, "The Connection Service File"): looked up in
 * PGSERVICEFILE (or ~/.pg_service.conf), then in PGSYSCONFDIR's pg_service.conf.
 *
 * @throws SLUICE_NOT_FOUND, SLUICE_USAGE
 */
export function readService(
  name: string,
  o: { file: string | undefined; home: string | undefined; systemFolder: string | undefined },
): Map<string, string> {
  const userFile = o.file ?? (o.home === undefined ? undefined : join(o.home, '.pg_service.conf'))
  const files = [userFile, o.systemFolder === undefined ? undefined : join(o.systemFolder, 'pg_service.conf')]
  const looked: string[] = []
  for (const file of files) {
    if (file === undefined) continue
    looked.push(file)
    const values = readSection(file, name, file === o.file)
    if (values !== null) return values
  }
  throw new SluiceError('SLUICE_NOT_FOUND', `no service ${name} in ${looked.join(' or ') || 'any service file'}`, {
    hint: 'define it in ~/.pg_service.conf, or name the file by PGSERVICEFILE',
  })
}

function readSection(file: string, name: string, required: boolean): Map<string, string> | null {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (!required && (code === 'ENOENT' || code === 'ENOTDIR')) return null
    throw new SluiceError('SLUICE_NOT_FOUND', `service file ${file} can't be read (${code})`, {
      cause: error,
      hint: 'check PGSERVICEFILE',
    })
  }
  const values = new Map<string, string>()
  let inside = false
  let found = false
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    const line = raw.trim()
    if (line === '' || line.startsWith('#')) continue
    if (line.startsWith('[')) {
      if (inside) break
      inside = line === `[${name}]`
      found ||= inside
    } else if (inside) {
      const equals = line.indexOf('=')
      if (equals < 1) {
        throw new SluiceError('SLUICE_USAGE', 'a line of a service file is no name=value', {
          where: { url: file, line: index + 1 },
        })
      }
      const parameter = line.slice(0, equals)
      if (!values.has(parameter)) values.set(parameter, line.slice(equals + 1))
    }
  }
  if (!found) return null
  checkParameterNames(values.keys(), `service ${name} in ${file}`, false)
  if (values.has('service')) throw new SluiceError('SLUICE_USAGE', `service ${name} in ${file} names a service again`)
  return values
}
