import { SluiceError, type ErrorCode } from '../../core/errors.ts'

interface LocalRule {
  readonly code: ErrorCode
  readonly says: string
  readonly hint?: string
}

/** Node's codes for failed file operations (errno(3)); what is missing here is SLUICE_LOCAL_IO with the system's own words. */
const RULES: Readonly<Record<string, LocalRule>> = {
  ENOENT: { code: 'SLUICE_NOT_FOUND', says: 'no such file', hint: 'check the spelling' },
  ENOTDIR: { code: 'SLUICE_NOT_FOUND', says: 'a file stands where the path wants a folder', hint: 'check the path' },
  EACCES: {
    code: 'SLUICE_ACCESS_DENIED',
    says: 'permission denied',
    hint: 'check the permissions of the file and of its folders',
  },
  EPERM: {
    code: 'SLUICE_ACCESS_DENIED',
    says: 'operation not permitted',
    hint: 'check owner, permissions and attributes',
  },
  EROFS: { code: 'SLUICE_ACCESS_DENIED', says: 'the file system is read-only', hint: 'write somewhere else' },
  EISDIR: {
    code: 'SLUICE_USAGE',
    says: 'this is a folder, not a file',
    hint: 'end the name with / to mean everything in it',
  },
  ENOSPC: { code: 'SLUICE_DISK_FULL', says: 'no space is left on the device' },
  EDQUOT: { code: 'SLUICE_DISK_FULL', says: 'the disk quota is used up' },
  EEXIST: { code: 'SLUICE_EXISTS', says: 'the file exists already' },
  ENAMETOOLONG: { code: 'SLUICE_LOCAL_IO', says: 'the name is too long', hint: 'a name may have 255 bytes' },
  ELOOP: { code: 'SLUICE_LOCAL_IO', says: 'symbolic links lead in a circle', hint: 'mend the links' },
  EMFILE: { code: 'SLUICE_LOCAL_IO', says: 'too many open files', hint: 'raise ulimit -n, or lower --concurrency' },
  EFBIG: {
    code: 'SLUICE_LOCAL_IO',
    says: 'the file grows beyond what is allowed',
    hint: 'check ulimit -f and the file system',
  },
  ENXIO: {
    code: 'SLUICE_LOCAL_IO',
    says: 'nothing can be opened there',
    hint: 'a socket cannot be opened by its name; - is standard input or output',
  },
}

/** A failed file operation as a SluiceError; a SluiceError comes back as it is. `byte` is where in the file. */
export function translateLocalError(error: unknown, path: string, byte?: number): SluiceError {
  if (error instanceof SluiceError) return error
  const systemCode = localErrorCode(error)
  const rule = RULES[systemCode]
  const where = byte === undefined ? { url: path } : { url: path, byte }
  if (rule === undefined) {
    const message = error instanceof Error ? error.message : String(error)
    return new SluiceError('SLUICE_LOCAL_IO', message, { where, cause: error })
  }
  return new SluiceError(rule.code, `${rule.says} (${systemCode})`, { where, hint: rule.hint, cause: error })
}

/** Node's `code`, or the empty string. */
export function localErrorCode(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string'
    ? error.code
    : ''
}
