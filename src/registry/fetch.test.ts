import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type IndexServer, startIndexServer } from '../../test/fixtures/registry/index-server.ts'
import { download, fetchText, requireSecure, withoutSecrets } from './fetch.ts'

let folder: string
let server: IndexServer

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'fetch-'))
  server = await startIndexServer()
})
afterEach(async () => {
  await server.close()
  rmSync(folder, { recursive: true, force: true })
})

const request = { maxBytes: 10, timeoutMs: 5_000 }
const into = (maxBytes: number) => ({ path: join(folder, 'file'), maxBytes, sha256: undefined, onProgress: () => {} })

describe('fetching', () => {
  it('is bounded in size: at, and one over', async () => {
    server.pages.set('/ten', '0123456789')
    server.pages.set('/eleven', '0123456789a')
    expect(await fetchText(`${server.url}/ten`, request)).toMatchObject({ text: '0123456789' })
    await expect(fetchText(`${server.url}/eleven`, request)).rejects.toMatchObject({ reason: 'too_large' })
    await download(`${server.url}/ten`, into(10))
    expect(readFileSync(join(folder, 'file'), 'utf8')).toBe('0123456789')
    rmSync(join(folder, 'file'))
    await expect(download(`${server.url}/ten`, into(9))).rejects.toMatchObject({ reason: 'too_large' })
  })

  it('is bounded in time', async () => {
    server.pages.set('/slow', 0)
    const slow = fetchText(`${server.url}/slow`, { maxBytes: 10_000, timeoutMs: 100 })
    await expect(slow).rejects.toMatchObject({ reason: 'network' })
  })

  it('says unchanged when the server does', async () => {
    server.pages.set('/page', 'text')
    const first = await fetchText(`${server.url}/page`, request)
    if (first === 'unchanged') return expect.unreachable()
    expect(await fetchText(`${server.url}/page`, { ...request, etag: first.etag })).toBe('unchanged')
  })

  it('follows redirects and judges where they end', async () => {
    server.pages.set('/old', 302)
    server.pages.set('/old location', '/new')
    server.pages.set('/new', 'text')
    expect(await fetchText(`${server.url}/old`, request)).toMatchObject({ text: 'text' })
  })

  it('takes a file address, and says when the file is not there', async () => {
    const source = join(folder, 'source')
    writeFileSync(source, 'content')
    expect(await download(pathToFileURL(source).href, into(100))).toMatch(/^[0-9a-f]{64}$/)
    expect(readFileSync(join(folder, 'file'), 'utf8')).toBe('content')
    await expect(download('file:///no/such/file', into(100))).rejects.toMatchObject({ reason: 'network' })
  })

  it('compares the sha256', async () => {
    server.pages.set('/page', 'text')
    const options = { ...into(100), sha256: '0'.repeat(64) }
    await expect(download(`${server.url}/page`, options)).rejects.toMatchObject({ reason: 'checksum_mismatch' })
  })
})

describe('addresses', () => {
  it.each(['https://x.test/', 'http://127.0.0.1:1/', 'http://localhost/', 'http://[::1]:80/'])(
    '%s is secure',
    (url) => {
      expect(() => requireSecure(url)).not.toThrow()
    },
  )

  it.each(['http://x.test/', 'http://127.0.0.1.x.test/', 'http://localhost.x.test/', 'http://10.0.0.1/'])(
    '%s is not',
    (url) => {
      expect(() => requireSecure(url)).toThrow(/plain http/)
    },
  )

  it('are shown without what may be secret', () => {
    expect(withoutSecrets('https://user:word@x.test/a?token=1')).toBe('https://x.test/a')
    expect(withoutSecrets('/a/path')).toBe('/a/path')
  })
})
