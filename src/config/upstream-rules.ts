/**
 * What a pool with a `url` may have beside it, and what a pool without one may not (contract 11.1).
 *
 * Nothing of the URL but its scheme and its host is ever shown: a query may be a secret.
 */
import { parseAddress } from './address.ts'
import { type Environment, expandReferences } from './environment.ts'
import { type Finding, listOf, type Path, quote } from './problem.ts'
import { suggest } from './suggest.ts'

type Raw = Readonly<Record<string, unknown>>

type Kind = 'http' | 'ws' | 'lines'

interface Scheme {
  readonly kind: Kind
  readonly isSecure?: true
}

export const SCHEMES: Readonly<Record<string, Scheme>> = {
  http: { kind: 'http' },
  https: { kind: 'http', isSecure: true },
  ws: { kind: 'ws' },
  wss: { kind: 'ws', isSecure: true },
  tcp: { kind: 'lines' },
  tls: { kind: 'lines', isSecure: true },
  unix: { kind: 'lines' },
}

const ALLOWED_SCHEMES = listOf(Object.keys(SCHEMES).map((name) => `${name}${name === 'unix' ? ':PATH' : '://'}`))
/** Keys that mean a program. */
const OF_PROGRAMS = ['args', 'env', 'inherit_env', 'cwd', 'pipes', 'distribution']
const OF_UPSTREAMS = ['headers', 'token', 'pool', 'ca', 'cert', 'key', 'connect_timeout_sec']
const OF_TLS = ['ca', 'cert', 'key']
/** What the protocols write themselves. */
const OWN_HEADER =
  /^(?:content-(?:type|length|encoding)|accept|host|connection|keep-alive|proxy-connection|upgrade|te|trailer|transfer-encoding|expect|last-event-id|stdio-bus-via|mcp-.*|sec-websocket-.*)$/i

/** The scheme of a URL, in lower case; undefined: it has none. */
export function schemeOf(url: string): string | undefined {
  return /^([a-z][a-z0-9+.-]*):/i.exec(url)?.[1]?.toLowerCase()
}

export function upstreamFindings(entry: Raw, path: Path, environment: Environment): Finding[] {
  const { url } = entry
  const refuse = (key: string, allowed: string): Finding => ({
    path: [...path, key],
    at: 'key',
    found: quote(key),
    allowed,
  })
  if (url === undefined)
    return OF_UPSTREAMS.filter((key) => key in entry).map((key) => refuse(key, 'only beside "url"'))
  const stray = OF_PROGRAMS.filter((key) => key in entry).map((key) =>
    refuse(key, 'only for programs: a "url" is none'),
  )
  if (typeof url !== 'string' || url === '') return stray
  const text = expandReferences(url, environment).value
  const place = [...path, 'url']
  const scheme = schemeOf(text)
  const row = scheme === undefined || !Object.hasOwn(SCHEMES, scheme) ? undefined : SCHEMES[scheme]
  if (row === undefined) return [...stray, unknownScheme(place, scheme)]
  return [...stray, ...urlFindings(text, scheme!, place), ...partnerFindings(entry, path, row, refuse)]
}

function unknownScheme(path: Path, scheme: string | undefined): Finding {
  const meant = scheme === undefined ? undefined : suggest(scheme, Object.keys(SCHEMES))
  const found = scheme === undefined ? 'a URL without a scheme' : `the scheme ${quote(scheme)}`
  const finding = { path, found, allowed: ALLOWED_SCHEMES }
  return meant === undefined ? finding : { ...finding, suggestion: `did you mean ${quote(meant)}?` }
}

function urlFindings(text: string, scheme: string, path: Path): Finding[] {
  if (scheme === 'unix') {
    const isPath = text.length > 'unix:'.length && !text.startsWith('unix://')
    return isPath ? [] : [{ path, found: 'no path', allowed: 'unix:PATH, relative to this file or absolute' }]
  }
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || url.hostname === '')
    return [
      {
        path,
        found: 'a URL that cannot be read',
        allowed: `${scheme}://HOST${scheme.startsWith('t') ? ':PORT' : '[:PORT]/PATH'}`,
      },
    ]
  if (url.username !== '' || url.password !== '') return [USER_IN_URL(path)]
  if (url.hash !== '') return [{ path, found: 'a part behind "#"', allowed: 'a URL without one: it is never sent' }]
  if (SCHEMES[scheme]!.kind !== 'lines') return []
  const rest = text.slice(`${scheme}://`.length)
  const address = parseAddress(rest)
  if (address !== undefined && address.port > 0) return []
  return [{ path, found: 'more or less than a host and a port', allowed: `${scheme}://HOST:PORT` }]
}

const USER_IN_URL = (path: Path): Finding => ({
  path,
  found: 'a user or a password',
  allowed: 'a URL without them: they would show in lists of processes and logs',
  suggestion: 'put them into "headers" or "token", as a reference to the environment',
})

type Refuse = (key: string, allowed: string) => Finding

function partnerFindings(entry: Raw, path: Path, { kind, isSecure }: Scheme, refuse: Refuse): Finding[] {
  const findings: Finding[] = []
  if (kind === 'lines' && 'headers' in entry) findings.push(refuse('headers', 'only with http(s):// and ws(s)://'))
  if (kind !== 'lines' && 'pool' in entry) findings.push(refuse('pool', 'only with tcp://, tls:// and unix:'))
  if (!isSecure) {
    const stray = OF_TLS.filter((key) => key in entry)
    findings.push(...stray.map((key) => refuse(key, 'only with https://, wss:// and tls://')))
  }
  if ('cert' in entry && !('key' in entry)) findings.push(refuse('cert', 'only beside its "key"'))
  if ('key' in entry && !('cert' in entry)) findings.push(refuse('key', 'only beside its "cert"'))
  const { protocol, aio } = entry
  if (kind === 'http' && protocol !== undefined && protocol !== 'mcp' && protocol !== 'auto')
    findings.push({
      path: [...path, 'protocol'],
      found: quote(String(protocol)),
      allowed: '"mcp" for http(s)://, or nothing',
    })
  const mode = typeof aio === 'object' && aio !== null ? (aio as Raw)['mode'] : undefined
  if (mode !== undefined && mode !== 'ndjson')
    findings.push({ path: [...path, 'aio', 'mode'], found: quote(String(mode)), allowed: '"ndjson" for a "url"' })
  return [...findings, ...headerFindings(entry, path)]
}

function headerFindings({ headers, token }: Raw, path: Path): Finding[] {
  if (typeof headers !== 'object' || headers === null) return []
  return Object.keys(headers).flatMap((name): Finding[] => {
    const place = { path: [...path, 'headers', name], at: 'key' as const, found: quote(name) }
    if (OWN_HEADER.test(name)) return [{ ...place, allowed: 'headers that the protocol does not write itself' }]
    if (token === undefined || name.toLowerCase() !== 'authorization') return []
    return [{ ...place, allowed: '"headers" with Authorization, or "token", not both' }]
  })
}
