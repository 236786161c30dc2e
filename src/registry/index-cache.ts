/**
 * The index as text: fresh from its address, or from the copy kept on disk.
 *
 * A copy younger than its time to live is used without asking; an older one when the address does not answer. Only what
 * can be read as an index replaces a copy. A copy that cannot be written costs a warning, not the index.
 */
import { createHash, randomUUID } from 'node:crypto'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { MAX_DOCUMENT_BYTES, readDocument } from './document.ts'
import { describeFailure, RegistryError } from './errors.ts'
import { fetchText, requireSecure, withoutSecrets } from './fetch.ts'
import { isUrl, type RegistrySources } from './sources.ts'

const FETCH_TIMEOUT_MS = 15_000
/** With a copy at hand nobody has to wait long. */
const REFRESH_TIMEOUT_MS = 5_000

const copySchema = z.object({
  url: z.string(),
  fetchedAtMs: z.number(),
  etag: z.string().optional(),
  text: z.string(),
})

type Copy = z.infer<typeof copySchema>

/** `absent`: there is neither an answer nor a copy, and `warning` says why. */
export type IndexState = 'file' | 'fetched' | 'cached' | 'stale' | 'absent'

export interface IndexText {
  readonly state: IndexState
  readonly text: string | undefined
  readonly warning: string | undefined
}

export interface IndexRequest {
  readonly nowMs: number
  /** Ask the address even if the copy is young. */
  readonly refresh: boolean
  readonly signal?: AbortSignal | undefined
}

export async function loadIndex(sources: RegistrySources, request: IndexRequest): Promise<IndexText> {
  if (!isUrl(sources.index)) return { state: 'file', text: await readIndexFile(sources.index), warning: undefined }
  requireSecure(sources.index)
  const copy = await readCopy(sources)
  const young = copy !== undefined && Math.abs(request.nowMs - copy.fetchedAtMs) < sources.ttlMs
  if (young && !request.refresh) return { state: 'cached', text: copy.text, warning: undefined }
  return refresh(sources, copy, request)
}

async function readIndexFile(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    throw new RegistryError('index_unreadable', path, describeFailure(error), error)
  }
}

async function refresh(sources: RegistrySources, copy: Copy | undefined, request: IndexRequest): Promise<IndexText> {
  try {
    const fresh = await fetchCopy(sources.index, copy, request)
    return { state: 'fetched', text: fresh.text, warning: await writeCopy(sources, fresh) }
  } catch (error) {
    request.signal?.throwIfAborted()
    const why = error instanceof RegistryError ? error.message : describeFailure(error)
    if (copy === undefined)
      return { state: 'absent', text: undefined, warning: `${why}; only the built-in agents are known` }
    return { state: 'stale', text: copy.text, warning: `${why}; the copy of the index on disk is used` }
  }
}

async function fetchCopy(url: string, copy: Copy | undefined, request: IndexRequest): Promise<Copy> {
  const answer = await fetchText(url, {
    maxBytes: MAX_DOCUMENT_BYTES,
    timeoutMs: copy === undefined ? FETCH_TIMEOUT_MS : REFRESH_TIMEOUT_MS,
    etag: copy?.etag,
    signal: request.signal,
  })
  if (answer === 'unchanged') {
    if (copy === undefined) throw new RegistryError('network', withoutSecrets(url), 'HTTP 304 to a first request')
    return { ...copy, fetchedAtMs: request.nowMs }
  }
  const document = readDocument(answer.text, 'index')
  if ('problem' in document) throw new RegistryError('index_unreadable', withoutSecrets(url), document.problem)
  const fresh = { url, fetchedAtMs: request.nowMs, text: answer.text }
  return answer.etag === undefined ? fresh : { ...fresh, etag: answer.etag }
}

function copyPath(sources: RegistrySources): string {
  const name = createHash('sha256').update(sources.index).digest('hex').slice(0, 16)
  return join(sources.cacheDir, 'index', `${name}.json`)
}

async function readCopy(sources: RegistrySources): Promise<Copy | undefined> {
  try {
    const copy = copySchema.parse(JSON.parse(await readFile(copyPath(sources), 'utf8')))
    return copy.url === sources.index ? copy : undefined
  } catch {
    // Missing, or damaged by others: a copy is only a convenience and will be written anew.
    return undefined
  }
}

async function writeCopy(sources: RegistrySources, copy: Copy): Promise<string | undefined> {
  const path = copyPath(sources)
  const draft = `${path}.${randomUUID()}`
  try {
    await mkdir(join(sources.cacheDir, 'index'), { recursive: true, mode: 0o700 })
    await writeFile(draft, JSON.stringify(copy), { mode: 0o600 })
    await rename(draft, path)
    return undefined
  } catch (error) {
    await rm(draft, { force: true }).catch(() => undefined)
    return new RegistryError('cache_unusable', sources.cacheDir, describeFailure(error), error).message
  }
}
