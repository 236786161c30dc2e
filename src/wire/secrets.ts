/**
 * Cuts what was configured as a secret out of what comes back from where it was sent: servers echo headers.
 *
 * It finds a secret as it was written, in any part of a text, and in the spellings that URLs and JSON give it. It cannot
 * find one that was taken apart or encoded otherwise; whoever holds a secret may always betray it on purpose.
 */
export type Redact = (text: string) => string

/** Anything shorter is a flag rather than a secret, and cutting it would garble every message. */
const MIN_SECRET_CHARACTERS = 4
/** Headers that say nothing of who asks. */
const PUBLIC_HEADERS: ReadonlySet<string> = new Set([
  'accept',
  'accept-encoding',
  'accept-language',
  'cache-control',
  'connection',
  'content-type',
  'host',
  'origin',
  'user-agent',
])

/** Headers of which a part is worth as much as the whole; any other value is one piece. */
const CREDENTIALS = /auth|token|key|secret|cookie|passw|credential|session/i

/** The values of headers, whole and without their scheme, and what a cookie or a password holds. */
export function secretsOfHeaders(headers: Readonly<Record<string, string>>): string[] {
  return Object.entries(headers).flatMap(([name, value]) => {
    if (PUBLIC_HEADERS.has(name.toLowerCase())) return []
    return CREDENTIALS.test(name) ? partsOf(value) : [value]
  })
}

/** A function that puts `mark` in the place of each secret. */
export function redactor(secrets: readonly string[], mark: string): Redact {
  const spelled = new Set(secrets.filter(({ length }) => length >= MIN_SECRET_CHARACTERS).flatMap(spellingsOf))
  // Longest first: a secret that contains another one must not leave its rest behind.
  const ordered = [...spelled].sort((a, b) => b.length - a.length)
  return (text) => ordered.reduce((clean, secret) => clean.replaceAll(secret, () => mark), text)
}

/** `Bearer TOKEN` is TOKEN too; `Basic BASE64` is the password inside; `sid=VALUE; x=y` are the values. */
function partsOf(value: string): string[] {
  const [scheme, ...words] = value.split(/[\s,;]+/).filter((word) => word !== '')
  const parts = words.length === 0 ? [scheme ?? ''] : words
  return [value, ...parts, ...parts.map(afterEquals), ...(/^basic$/i.test(scheme ?? '') ? passwordIn(words[0]) : [])]
}

function afterEquals(word: string): string {
  return word.slice(word.indexOf('=') + 1).replace(/^"(.*)"$/, '$1')
}

function passwordIn(base64 = ''): string[] {
  const pair = Buffer.from(base64, 'base64').toString()
  return [pair, pair.slice(pair.indexOf(':') + 1)]
}

function spellingsOf(secret: string): string[] {
  return [secret, encodeURIComponent(Buffer.from(secret).toString()), JSON.stringify(secret).slice(1, -1)]
}
