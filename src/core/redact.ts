/** Query parameters that are, or carry, a secret: passwords, keys, and the signature of a presigned URL; as a whole or as the last word of a name. */
const SECRET_PARAMETER =
  /^(?:.*[-_.])?(?:password|passwd|passphrase|secret|token|signature|credential)$|^(?:pwd|sslpassword|sig|(?:.*[-_.])?(?:access|api|secret|private)[-_]?key|awsaccesskeyid)$/i

/** A URL fit for messages, logs and the state folder: no password, no signature. Text that is no URL comes back as it is. */
export function redactUrl(text: string): string {
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(text)
  if (scheme === null) return text
  if (/^(s3|file)$/i.test(scheme[1] ?? '')) return text
  const withoutPassword = text.replace(/^([a-z][a-z0-9+.-]*:\/\/)([^/?#]*)@/i, (_, head: string, userInfo: string) => {
    const colon = userInfo.indexOf(':')
    return colon < 0 ? `${head}${userInfo}@` : `${head}${userInfo.slice(0, colon)}:***@`
  })
  // A password with a plain `/`, `?` or `#` in it is no valid URL, and must not be printed either. What is only digits before such a character is a port.
  const broken = withoutPassword.replace(
    /^([a-z][a-z0-9+.-]*:\/\/[^/?#@:[]*):(?!\d*(?:[/?#]|$))(?!\*\*\*@)[^@]*[/?#].*@/i,
    '$1:***@',
  )
  return broken.replace(/([?&])([^=&#]+)=([^&#]*)/g, (whole, separator: string, name: string) =>
    SECRET_PARAMETER.test(decodeSafely(name)) ? `${separator}${name}=***` : whole,
  )
}

function decodeSafely(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
