/** What a transaction that loads rows begins with: it waits for another session's lock no longer than this. */
export function beginSql(lockTimeoutMs: number): readonly string[] {
  return ['BEGIN', `SET LOCAL lock_timeout = ${Math.round(lockTimeoutMs)}`]
}
