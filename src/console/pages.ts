/**
 * `/console/`: the page and its files, as they were built (contract 15.1, 15.16, 15.21).
 *
 * It knows its files from a list that is read once, so no path of a request is ever one of the file system. Every path that is no
 * file is the page itself, which finds its view by the address.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import type { Adapter } from '../web/service.ts'
import type { WebRequest } from '../web/web-request.ts'
import { isExposed } from './api/api.ts'

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  'media-src data: blob:',
  "connect-src 'self'",
  "worker-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ')

const HEADERS = {
  'content-security-policy': POLICY,
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
}

const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  json: 'application/json',
}

interface PageFile {
  readonly type: string
  readonly plain: Buffer
  readonly zipped: Buffer | undefined
}

export class PagesAdapter implements Adapter {
  readonly methods = ['GET', 'HEAD']
  readonly isRealm = true
  readonly #files: ReadonlyMap<string, PageFile>
  readonly #publicUrl: string | undefined

  /** `folder`: where the build has put the page. */
  constructor(folder: URL, publicUrl: string | undefined) {
    this.#files = readFiles(folder)
    this.#publicUrl = publicUrl
  }

  serve(web: WebRequest): void {
    if (isExposed(web, this.#publicUrl)) return web.refuse({ reason: 'tls_required', headers: HEADERS })
    if (web.request.url?.replace(/[?#].*$/s, '') === '/console')
      return web.answer(308, undefined, { location: '/console/' })
    const name = (web.segments ?? []).slice(1).join('/')
    const file = this.#files.get(name)
    if (file !== undefined && name !== 'index.html') return send(web, file, 'public, max-age=31536000, immutable')
    if (name.startsWith('assets/')) return web.refuse({ reason: 'not_found', headers: HEADERS })
    const page = this.#files.get('index.html')
    if (page === undefined) return web.refuse({ reason: 'not_found', headers: HEADERS })
    send(web, page, 'no-cache')
  }
}

function send(web: WebRequest, { type, plain, zipped }: PageFile, cache: string): void {
  const isZipped = zipped !== undefined && /\bgzip\b/.test(web.header('accept-encoding') ?? '')
  const body = isZipped ? zipped : plain
  const encoding = isZipped ? { 'content-encoding': 'gzip' } : {}
  const headers = { ...HEADERS, 'content-type': type, 'cache-control': cache, vary: 'Accept-Encoding', ...encoding }
  if (web.method === 'HEAD') web.answer(200, undefined, { ...headers, 'content-length': String(body.length) })
  else web.answer(200, body, headers)
}

function readFiles(folder: URL): ReadonlyMap<string, PageFile> {
  if (!existsSync(folder)) return new Map()
  const names = readdirSync(folder, { recursive: true }).map((name) => String(name).replaceAll('\\', '/'))
  return new Map(
    names.flatMap((name): [string, PageFile][] => {
      const type = TYPES[/\.(\w+)$/.exec(name)?.[1] ?? '']
      if (type === undefined) return []
      const zipped = names.includes(`${name}.gz`) ? readFileSync(new URL(`${name}.gz`, folder)) : undefined
      return [[name, { type, plain: readFileSync(new URL(name, folder)), zipped }]]
    }),
  )
}
