import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { callEnd, callStart, type TemporaryFolder, TRACE, temporaryFolder } from '../../test/fixtures/trace/calls.ts'
import { openTracing } from './tracing.ts'

let folder: TemporaryFolder
let server: Server
let bodies: string[]
let endpoint: string

beforeEach(async () => {
  folder = temporaryFolder()
  bodies = []
  server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    bodies.push(body)
    response.end('{}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/traces`
})
afterEach(() => {
  server.close().closeAllConnections()
  folder.remove()
})

it('keeps calls and sends them to the collector, the last ones when it closes', async () => {
  const path = join(folder.path, 'traces.db')
  const lines: string[] = []
  const log = (level: string, message: string) => void lines.push(`${level}: ${message}`)
  const tracing = await openTracing({ store: { path }, collector: { endpoint }, version: '1.2.3', log })
  tracing.store.begin(callStart())
  tracing.store.end(callEnd())
  expect(await tracing.store.query('get', { trace_id: TRACE })).toMatchObject({ text: expect.stringContaining(TRACE) })
  await tracing.close()
  const spans = bodies.flatMap((body) => JSON.parse(body).resourceSpans[0].scopeSpans[0].spans)
  expect(spans.map((span: { name: string }) => span.name)).toEqual(['invoke_agent reader', 'invoke_workflow'])
  expect(bodies[0]).toContain('"service.version","value":{"stringValue":"1.2.3"}')
  expect(lines).toEqual([`info: traces are kept in ${path}`])
})

it('starts and says why when neither store nor collector works', async () => {
  const lines: string[] = []
  const log = (level: string, message: string) => void lines.push(`${level}: ${message}`)
  const collector = { endpoint: 'http://127.0.0.1:1/v1/traces' }
  const tracing = await openTracing({ store: { path: '/dev/null/traces.db' }, collector, version: '1', log })
  tracing.store.begin(callStart())
  tracing.store.end(callEnd())
  expect(await tracing.store.query('get', { trace_id: TRACE })).toMatchObject({
    text: expect.stringContaining('completed'),
  })
  await tracing.close()
  expect(lines[0]).toMatch(/^error: traces are kept in memory only/)
})
