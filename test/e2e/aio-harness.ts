/** Configurations and questions that the tests of the gateway over the real daemon share. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import type { LineClient, Message } from '../support/line-client.ts'

const here = (name: string): string => fileURLToPath(new URL(name, import.meta.url))

/** A pool of `aio-agent.mjs` that can be called by name. */
export function agent(id: string, aio: object = {}, more: Record<string, unknown> = {}): Record<string, unknown> {
  const { args = [], ...rest } = more as { args?: string[] }
  return {
    id,
    command: process.execPath,
    args: [here('aio-agent.mjs'), ...args],
    aio: { type: 'stdio', ...aio },
    ...rest,
  }
}

export function oneshot(id: string, behaviour: string, aio: object = {}): Record<string, unknown> {
  const args = [here('../fixtures/aio/oneshot-agent.mjs'), behaviour]
  return { id, command: process.execPath, args, aio: { type: 'stdio', mode: 'oneshot', ...aio } }
}

export function mcpServer(id: string, generation: 'v1' | 'v2', more: object = {}): Record<string, unknown> {
  const args = [here(`../fixtures/aio/mcp-server-${generation}.mjs`)]
  return { id, command: process.execPath, args, aio: { type: 'mcp' }, ...more }
}

/** The calls of a trace, as the bus tells them. */
export async function callsOf(client: LineClient, traceId: string): Promise<Message[]> {
  const answer = await client.ask({ id: `get-${traceId}`, method: 'bus::traces.get', params: { trace_id: traceId } })
  if (answer.error !== undefined) throw new Error(JSON.stringify(answer.error))
  return answer.result.calls
}

/** An HTTP agent that answers with an event stream of two parts and a result. */
export async function startHttpAgent(): Promise<{ endpoint: string; server: Server }> {
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => (body += chunk))
    request.on('end', () => {
      const { id, params } = JSON.parse(body)
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const send = (message: object): void => void response.write(`data: ${JSON.stringify({ id, ...message })}\n\n`)
      send({ partial: true, outputs: [{ type: 'text', value: 'one' }] })
      send({ partial: true, outputs: [{ type: 'text', value: 'two' }] })
      send({ result: { outputs: params.inputs } })
      response.end('data: [DONE]\n\n')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}/rpc`, server }
}
