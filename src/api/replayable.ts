/** Whether a source can be read a second time, as far as its URL tells; HTTP without ETag or date turns out later. */
export function isReplayableUrl(url: string): boolean {
  return url !== '-'
}
