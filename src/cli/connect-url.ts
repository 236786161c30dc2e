/**
 * `connect --url`: a far bus, or any MCP server over Streamable HTTP, in the place of a bus on a socket (contract 11).
 *
 * What the host says becomes requests, what is answered becomes lines; everything else is as with a bus: what is pending
 * fails when the upstream goes, it is looked for, and the host's introduction is said to it again.
 */
import { resolve } from 'node:path'
import type { Duplex } from 'node:stream'
import { type BusError, BusRefused, BusUnavailable } from '../client/errors.ts'
import { type Dial, MAX_LINE_BYTES } from '../client/link.ts'
import type { Connect, Upstream, UpstreamFailure } from '../remote/upstream.ts'
import { givenToken, type ReachOptions } from './reach.ts'
import { UserMistake } from './user-mistake.ts'

export interface UrlOptions extends ReachOptions {
  readonly url?: string
  readonly config?: string
  readonly pool?: string
  readonly autostart?: boolean
}

const SCHEMES: ReadonlySet<string> = new Set(['http:', 'https:', 'ws:', 'wss:'])
const SECURE: ReadonlySet<string> = new Set(['https:', 'wss:'])
const CONNECT_TIMEOUT_MS = 10_000

/** Holds the flags against each other; connects nothing. */
export function dialUrl(text: string, options: UrlOptions, say: (sentence: string) => void): Dial {
  const url = readUrl(text)
  requireAlone(options)
  const { ca, cert, key } = options
  if (!SECURE.has(url.protocol) && [ca, cert, key].some((file) => file !== undefined))
    throw new UserMistake('--ca, --cert and --key go with an https:// or wss:// URL')
  const tls = {
    ...(ca && { ca: resolve(ca) }),
    ...(cert && { cert: resolve(cert) }),
    ...(key && { key: resolve(key) }),
  }
  const upstream = { url, headers: {}, tls, connectTimeoutMs: CONNECT_TIMEOUT_MS, maxMessageBytes: MAX_LINE_BYTES }
  return dialerOf(upstream, givenToken(options), say)
}

function readUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !SCHEMES.has(url.protocol))
    throw new UserMistake(
      '--url takes an http://, https://, ws:// or wss:// URL; a bus on a socket is named by --unix, --tcp or --tls',
    )
  if (url.username !== '' || url.password !== '')
    throw new UserMistake('--url takes no user and no password: use --token-file, or the variable STDIO_BUS_TOKEN')
  return url
}

function requireAlone({ unix, tcp, tls, config, pool, autostart }: UrlOptions): void {
  const others = { '--unix': unix, '--tcp': tcp, '--tls': tls, '--config': config, '--autostart': autostart }
  const other = Object.entries(others).find(([, value]) => value !== undefined)
  if (other !== undefined) throw new UserMistake(`--url and ${other[0]} name different buses: leave one out`)
  if (pool !== undefined)
    throw new UserMistake('--pool does not go with --url: the pool is a part of the URL (/mcp/POOL)')
}

function dialerOf(upstream: Upstream, token: (() => string) | undefined, say: (sentence: string) => void): Dial {
  let refusal: BusError | undefined
  return async () => {
    // Whoever was refused once would be refused again.
    if (refusal !== undefined) throw refusal
    const { connectUpstream } = await import('../remote/connect.ts')
    const { showAddress } = await import('../remote/address.ts')
    const explain = ({ why, isRefusal }: UpstreamFailure): BusError => {
      const said = `${showAddress(upstream.url)}: ${why}`
      return isRefusal ? new BusRefused('unauthenticated', said) : new BusUnavailable(said)
    }
    const shown = token?.()
    const from = shown === undefined ? upstream : { ...upstream, token: shown }
    return open(connectUpstream, from, {
      say,
      explain,
      refused: (error) => {
        refusal = error
      },
    })
  }
}

interface Listener {
  readonly say: (sentence: string) => void
  readonly explain: (failure: UpstreamFailure) => BusError
  readonly refused: (error: BusError) => void
}

async function open(connect: Connect, upstream: Upstream, { say, explain, refused }: Listener): Promise<Duplex> {
  const lost = (failure: UpstreamFailure): void => {
    const error = explain(failure)
    say(error.message)
    if (failure.isRefusal) refused(error)
  }
  try {
    const { signal } = new AbortController()
    const { stream } = await connect(upstream, { vias: [], signal, lost, note: say })
    return stream
  } catch (cause) {
    throw isFailure(cause) ? explain(cause) : cause
  }
}

function isFailure(cause: unknown): cause is UpstreamFailure {
  return cause instanceof Error && cause.name === 'UpstreamFailure'
}
