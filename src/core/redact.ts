/** Query parameters that are, or carry, a secret: passwords, keys, and the signature of a presigned URL. */
const SECRET_PARAMETER = /^(password|passwd|pwd|passphrase|sslpassword|secret|token|sig|signature|access_?key|api_?key|x-amz-signature|x-amz-credential|x-amz-security-token|awsaccesskeyid|x-goog-signature|x-goog-credential)$/i

/** A URL fit for messages, logs and the state folder: no password, no signature. Text that is no URL comes back as it is. */
export function redactUrl(text: string): string {
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(text)
  if (scheme === null) return text
  if (/^(s3|file)$/i.test(scheme[1] ?? '')) return text
  const withoutPassword = text.replace(/^([a-z][a-z0-9+.-]*:\/\/)([^/?#]*)@/i, (_, head: string, userInfo: string) => {
    const colon = userInfo.indexOf(':')
    return colon < 0 ? `${head}${userInfo}@` : `${head}${userInfo.slice(0, colon)}:***@`
  })
  return withoutPassword.replace(/([?&])([^=&#]+)=([^&#]*)/g, (whole, separator: string, name: string) =>
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
