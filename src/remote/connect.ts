/** Which kind of upstream a URL names: one adapter for each scheme, loaded by those who need it (contract 11.1). */
import type { Connect } from './upstream.ts'

const ADAPTERS: Readonly<Record<string, () => Promise<Connect>>> = {
  'http:': async () => (await import('./mcp/http-upstream.ts')).connectHttp,
  'https:': async () => (await import('./mcp/http-upstream.ts')).connectHttp,
  'ws:': async () => (await import('./websocket.ts')).connectWebSocket,
  'wss:': async () => (await import('./websocket.ts')).connectWebSocket,
  'tcp:': async () => (await import('./lines.ts')).connectLines,
  'tls:': async () => (await import('./lines.ts')).connectLines,
  'unix:': async () => (await import('./lines.ts')).connectLines,
}

export const connectUpstream: Connect = async (upstream, opening) => {
  const adapter = ADAPTERS[upstream.url.protocol]
  if (adapter === undefined) throw new Error(`no upstream has the scheme ${upstream.url.protocol}`)
  const connect = await adapter()
  return connect(upstream, opening)
}
