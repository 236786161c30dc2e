/**
 * Reads one JSON document of an issuer: over https, or plain http from this machine, within bounds, and from that address alone.
 *
 * A redirect is a failure: whoever can send us elsewhere could hand us keys of his own. Nothing is retried here. What is
 * told of a failure names the place without its user, password and query.
 */
import { Agent, type Dispatcher, EnvHttpProxyAgent, fetch } from 'undici'
import { isLoopbackHost } from '../../host/address.ts'

export const DOCUMENT_TIMEOUT_MS = 5_000
export const MAX_DOCUMENT_BYTES = 256 * 1024

export type JsonObject = Readonly<Record<string, unknown>>

/** The issuer could not be read, with a sentence for the operator. */
export class IssuerFailure extends Error {
  override readonly name = 'IssuerFailure'
}

export async function readDocument(url: string, signal: AbortSignal): Promise<JsonObject> {
  const { isLocal } = requireSafe(url)
  const place = shownUrl(url)
  const dispatcher = isLocal ? new Agent() : new EnvHttpProxyAgent()
  const limit = AbortSignal.timeout(DOCUMENT_TIMEOUT_MS)
  try {
    return parseObject(await readBody(url, dispatcher, AbortSignal.any([signal, limit])), place)
  } catch (error) {
    if (error instanceof IssuerFailure) throw error
    const why = limit.aborted ? `nothing whole within ${DOCUMENT_TIMEOUT_MS / 1_000} s` : describe(error)
    throw new IssuerFailure(`${place}: ${why}`, { cause: error })
  } finally {
    await dispatcher.destroy()
  }
}

async function readBody(url: string, dispatcher: Dispatcher, signal: AbortSignal): Promise<string> {
  const response = await fetch(url, { headers: { accept: 'application/json' }, redirect: 'manual', signal, dispatcher })
  const place = shownUrl(url)
  if (response.status !== 200) throw new IssuerFailure(`${place}: HTTP ${response.status}`)
  const parts: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length
    if (bytes > MAX_DOCUMENT_BYTES) throw new IssuerFailure(`${place}: over ${MAX_DOCUMENT_BYTES} bytes`)
    parts.push(chunk)
  }
  return Buffer.concat(parts).toString('utf8')
}

function parseObject(text: string, place: string): JsonObject {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new IssuerFailure(`${place}: not JSON`, { cause: error })
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as JsonObject
  throw new IssuerFailure(`${place}: no JSON object`)
}

function requireSafe(url: string): { readonly isLocal: boolean } {
  if (!URL.canParse(url)) throw new IssuerFailure('an address of the issuer is no URL')
  const { protocol, hostname } = new URL(url)
  const isLocal = isLoopbackHost(hostname.replace(/^\[|\]$/g, ''))
  if (protocol === 'https:' || (protocol === 'http:' && isLocal)) return { isLocal }
  throw new IssuerFailure(`${shownUrl(url)}: neither https nor http on this machine`)
}

function shownUrl(url: string): string {
  const { protocol, host, pathname } = new URL(url)
  return `${protocol}//${host}${pathname}`
}

/** `fetch failed` says nothing; its cause does. */
function describe(error: unknown): string {
  const { cause } = error as Error
  const { code } = (cause ?? {}) as NodeJS.ErrnoException
  return code ?? (cause instanceof Error ? cause.name : (error as Error).name)
}
