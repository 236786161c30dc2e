/**
 * One MCP server of a session: connected with the official client, its tools listed, called and closed.
 *
 * The client package is loaded only when a session names a server. A stdio server gets a small safe environment and what
 * the session gave it, never the agent's own. Invariant: after `close` its process is gone within a second.
 */
import type { ContentBlock, McpServer } from '@agentclientprotocol/sdk'
import type { Client, Transport } from '@modelcontextprotocol/client'
import { toText } from './content.ts'
import { isRecord } from './errors.ts'

export interface McpTool {
  readonly name: string
  readonly title: string
  readonly description: string | undefined
  readonly inputSchema: Record<string, unknown>
}

export interface ToolResult {
  readonly failed: boolean
  readonly text: string
}

export interface McpConnection {
  readonly name: string
  readonly tools: readonly McpTool[]
  call(tool: string, args: Record<string, unknown>, signal: AbortSignal): Promise<ToolResult>
  close(): Promise<void>
}

export interface McpOptions {
  readonly cwd: string
  readonly version: string
  readonly connectTimeoutMs: number
  readonly callTimeoutMs: number
  /** Ends the connecting. */
  readonly signal: AbortSignal
}

/** Starts or reaches a server and lists its tools. */
export async function connectMcpServer(server: McpServer, options: McpOptions): Promise<McpConnection> {
  const { Client } = await import('@modelcontextprotocol/client')
  const client = new Client({ name: 'openai-agent', version: options.version })
  const transport = await toTransport(server, options.cwd)
  const close = () => closeClient(client, transport)
  options.signal.addEventListener('abort', close, { once: true })
  try {
    options.signal.throwIfAborted()
    await client.connect(transport, { timeout: options.connectTimeoutMs })
    const tools = client.getServerCapabilities()?.tools ? await listTools(client, options.connectTimeoutMs) : []
    return {
      name: server.name,
      tools,
      close,
      call: (tool, args, signal) => callTool(client, tool, args, signal, options),
    }
  } catch (error) {
    await close()
    throw error
  } finally {
    options.signal.removeEventListener('abort', close)
  }
}

async function toTransport(server: McpServer, cwd: string): Promise<Transport> {
  if ('command' in server) {
    const { StdioClientTransport } = await import('@modelcontextprotocol/client/stdio')
    const env = Object.fromEntries(server.env.map(({ name, value }) => [name, value]))
    // Its stderr may hold whatever it works on, and that belongs in no log of ours.
    return new StdioClientTransport({ command: server.command, args: server.args, env, cwd, stderr: 'ignore' })
  }
  if (server.type !== 'http') throw new Error(`its transport "${server.type}" is not supported; use stdio or http`)
  const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client')
  const headers = Object.fromEntries(server.headers.map(({ name, value }) => [name, value]))
  return new StreamableHTTPClientTransport(new URL(server.url), { requestInit: { headers } })
}

async function listTools(client: Client, timeout: number): Promise<McpTool[]> {
  const { tools } = await client.listTools(undefined, { timeout })
  return tools.map((tool) => ({
    name: tool.name,
    title: tool.title ?? tool.annotations?.title ?? tool.name,
    description: tool.description,
    inputSchema: tool.inputSchema as Record<string, unknown>,
  }))
}

async function callTool(
  client: Client,
  name: string,
  args: Record<string, unknown>,
  signal: AbortSignal,
  options: McpOptions,
): Promise<ToolResult> {
  const result = await client.callTool({ name, arguments: args }, { signal, timeout: options.callTimeoutMs })
  const blocks = Array.isArray(result.content) ? (result.content as ContentBlock[]) : []
  const structured = isRecord(result.structuredContent) ? JSON.stringify(result.structuredContent) : ''
  return { failed: result.isError === true, text: blocks.map(toText).join('\n') || structured }
}

const termAfterMs = 200
const killAfterMs = 500

/** The client's own way takes seconds for a server that does not listen; a worker has one. */
async function closeClient(client: Client, transport: Transport): Promise<void> {
  const pid = 'pid' in transport && typeof transport.pid === 'number' ? transport.pid : undefined
  const closed = client.close().catch(() => {})
  if (pid === undefined) return closed
  const timers = [
    setTimeout(() => signalProcess(pid, 'SIGTERM'), termAfterMs),
    setTimeout(() => signalProcess(pid, 'SIGKILL'), killAfterMs),
  ]
  await closed
  for (const timer of timers) clearTimeout(timer)
}

function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // Gone already, which is what was wanted.
  }
}
