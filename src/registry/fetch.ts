/**
 * Fetches over http(s) or from a `file:` address, with bounds on time and size.
 *
 * Plain http is accepted from this machine only, unless the caller can check what it gets. The proxy variables of the
 * environment are honoured. Nothing is retried here: whoever asked knows whether a cached answer will do.
 */
import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import { EnvHttpProxyAgent, fetch, type Response } from 'undici'
import { isLoopbackHost } from '../host/address.ts'
import { describeFailure, RegistryError } from './errors.ts'

const CONNECT_TIMEOUT_MS = 10_000
const STALL_TIMEOUT_MS = 30_000

interface Body {
  readonly chunks: AsyncIterable<Uint8Array>
  readonly totalBytes: number | undefined
}

export interface TextRequest {
  readonly maxBytes: number
  readonly timeoutMs: number
  readonly etag?: string | undefined
  readonly signal?: AbortSignal | undefined
}

/** The text at an address and its ETag, or `unchanged` when the server says that the ETag still holds. */
export async function fetchText(
  url: string,
  request: TextRequest,
): Promise<{ readonly text: string; readonly etag: string | undefined } | 'unchanged'> {
  const headers: Record<string, string> = { accept: 'application/json' }
  if (request.etag !== undefined) headers['if-none-match'] = request.etag
  const signal = either(request.signal, AbortSignal.timeout(request.timeoutMs))
  return withNetwork(url, async (dispatcher) => {
    const response = await fetch(url, { headers, signal, dispatcher })
    requireSecure(response.url)
    if (response.status === 304) return 'unchanged'
    const parts: Uint8Array[] = []
    for await (const chunk of bounded(bodyOf(url, response).chunks, url, request.maxBytes)) parts.push(chunk)
    return { text: Buffer.concat(parts).toString('utf8'), etag: response.headers.get('etag') ?? undefined }
  })
}

export interface Download {
  readonly path: string
  readonly maxBytes: number
  /** Lower-case hexadecimal; what comes over plain http from elsewhere must have one. */
  readonly sha256: string | undefined
  readonly signal?: AbortSignal | undefined
  readonly onProgress: (doneBytes: number, totalBytes: number | undefined) => void
}

/** Writes what is at an address to a file, and compares its sha256 while it comes. Returns the sha256. */
export async function download(url: string, options: Download): Promise<string> {
  if (!url.startsWith('file:')) {
    return withNetwork(url, async (dispatcher) => {
      if (options.sha256 === undefined) requireSecure(url)
      const response = await fetch(url, { dispatcher, signal: options.signal ?? null })
      if (options.sha256 === undefined) requireSecure(response.url)
      return save(url, bodyOf(url, response), options)
    })
  }
  return save(url, await openFile(url), options)
}

async function openFile(url: string): Promise<Body> {
  try {
    const path = fileURLToPath(url)
    const { size } = await stat(path)
    return { chunks: createReadStream(path), totalBytes: size }
  } catch (error) {
    throw new RegistryError('network', url, describeFailure(error), error)
  }
}

async function save(url: string, body: Body, options: Download): Promise<string> {
  const hash = createHash('sha256')
  let doneBytes = 0
  const watched = async function* (): AsyncGenerator<Uint8Array> {
    for await (const chunk of bounded(body.chunks, url, options.maxBytes)) {
      hash.update(chunk)
      doneBytes += chunk.length
      options.onProgress(doneBytes, body.totalBytes)
      yield chunk
    }
  }
  await pipeline(watched(), createWriteStream(options.path, { flags: 'wx', mode: 0o600 }))
  const sha256 = hash.digest('hex')
  if (options.sha256 === undefined || options.sha256 === sha256) return sha256
  throw new RegistryError('checksum_mismatch', url, `expected ${options.sha256}, got ${sha256}`)
}

async function withNetwork<T>(url: string, use: (dispatcher: EnvHttpProxyAgent) => Promise<T>): Promise<T> {
  const dispatcher = new EnvHttpProxyAgent({
    connect: { timeout: CONNECT_TIMEOUT_MS },
    headersTimeout: STALL_TIMEOUT_MS,
    bodyTimeout: STALL_TIMEOUT_MS,
  })
  try {
    return await use(dispatcher)
  } catch (error) {
    if (error instanceof RegistryError || isDiskError(error)) throw error
    throw new RegistryError('network', withoutSecrets(url), describeFailure(error), error)
  } finally {
    await dispatcher.destroy()
  }
}

function isDiskError(error: unknown): boolean {
  return ['ENOSPC', 'EACCES', 'EROFS', 'EDQUOT', 'EEXIST'].includes(String((error as NodeJS.ErrnoException).code))
}

function bodyOf(url: string, response: Response): Body {
  if (!response.ok || response.body === null) {
    throw new RegistryError('network', withoutSecrets(url), `HTTP ${response.status}`)
  }
  const length = Number(response.headers.get('content-length'))
  // A packed body is longer when it arrives than its header says.
  const packed = response.headers.get('content-encoding') !== null
  return { chunks: response.body, totalBytes: length > 0 && !packed ? length : undefined }
}

async function* bounded(chunks: AsyncIterable<Uint8Array>, url: string, maxBytes: number): AsyncGenerator<Uint8Array> {
  let bytes = 0
  for await (const chunk of chunks) {
    bytes += chunk.length
    if (bytes > maxBytes) throw new RegistryError('too_large', withoutSecrets(url), `over ${maxBytes} bytes`)
    yield chunk
  }
}

/** Redirects are followed, so the address that answered is judged, not only the one that was asked. */
export function requireSecure(url: string): void {
  const { protocol, hostname } = new URL(url)
  if (protocol === 'https:' || isLoopbackHost(hostname.replace(/^\[|\]$/g, ''))) return
  throw new RegistryError('insecure_url', withoutSecrets(url))
}

/** An address as it may be shown: without the user, the password and the query. */
export function withoutSecrets(url: string): string {
  if (!URL.canParse(url)) return url
  const shown = new URL(url)
  shown.username = ''
  shown.password = ''
  shown.search = ''
  return shown.href
}

function either(first: AbortSignal | undefined, second: AbortSignal): AbortSignal {
  return first === undefined ? second : AbortSignal.any([first, second])
}
