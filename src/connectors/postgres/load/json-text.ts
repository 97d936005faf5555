/** Whether a text is that of a JSON object or array, which programs write into JSON Lines for want of better. */
export function isNestedJson(text: string): boolean {
  if (!/^\s*[[{]/.test(text)) return false
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
