/**
 * Starts the agent in this process, between an SDK client and a scripted endpoint, and shows what each of them saw.
 */
import {
  type ClientContext,
  type ContentBlock,
  client,
  type McpServer,
  methods,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
  type SessionUpdate,
} from '@agentclientprotocol/sdk'
import { Agent } from 'undici'
import { type Endpoint, type EndpointOptions, startEndpoint } from '../../src/agents/demo-endpoint/server.ts'
import { OpenAiAgent } from '../../src/agents/openai/agent.ts'
import { toApp } from '../../src/agents/openai/app.ts'
import { readConfig } from '../../src/agents/openai/config.ts'
import { SessionStore } from '../../src/agents/openai/session-store.ts'

export interface HarnessOptions extends EndpointOptions {
  readonly env?: Record<string, string>
  /** Instead of the scripted endpoint's URL. */
  readonly baseUrl?: string
  readonly permission?: (
    request: RequestPermissionRequest,
  ) => RequestPermissionResponse | Promise<RequestPermissionResponse>
}

export interface Harness {
  readonly ctx: ClientContext
  readonly endpoint: Endpoint
  readonly url: string
  readonly logs: string[]
  readonly updates: Array<{ sessionId: string; update: SessionUpdate }>
  newSession(cwd?: string, mcpServers?: McpServer[]): Promise<string>
  prompt(sessionId: string, text: string): Promise<string>
  /** All text shown in a session so far, or its thoughts. */
  shown(sessionId: string, kind?: 'agent_message_chunk' | 'agent_thought_chunk' | 'user_message_chunk'): string
  stop(): Promise<void>
}

export const allow: HarnessOptions['permission'] = () => ({ outcome: { outcome: 'selected', optionId: 'allow' } })
export const reject: HarnessOptions['permission'] = () => ({ outcome: { outcome: 'selected', optionId: 'reject' } })

export async function startHarness(options: HarnessOptions): Promise<Harness> {
  const endpoint = await startEndpoint(options)
  const read = readConfig({ OPENAI_BASE_URL: options.baseUrl ?? endpoint.url, ...options.env })
  if ('problems' in read) throw new Error(read.problems.join('\n'))
  const { config } = read
  const logs: string[] = []
  const dispatcher = new Agent({ headersTimeout: 0, bodyTimeout: 0 })
  const log = (message: string) => logs.push(message)
  const store = config.sessionDir === undefined ? undefined : new SessionStore(config.sessionDir, log)
  const agent = new OpenAiAgent({ config, dispatcher, store, log, version: '0.0.0' })
  const updates: Harness['updates'] = []
  const app = client({ name: 'harness' }).onNotification(methods.client.session.update, ({ params }) => {
    updates.push(params)
  })
  if (options.permission) {
    app.onRequest(methods.client.session.requestPermission, ({ params }) => options.permission!(params))
  }
  const connection = app.connect(toApp(agent))
  const ctx = connection.agent
  await ctx.request(methods.agent.initialize, { protocolVersion: 1 })
  return {
    ctx,
    endpoint,
    url: `${config.baseUrl}/chat/completions`,
    logs,
    updates,
    newSession: async (cwd = '/', mcpServers = []) =>
      (await ctx.request(methods.agent.session.new, { cwd, mcpServers })).sessionId,
    prompt: async (sessionId, text) => {
      const prompt: ContentBlock[] = [{ type: 'text', text }]
      return (await ctx.request(methods.agent.session.prompt, { sessionId, prompt })).stopReason
    },
    shown: (sessionId, kind = 'agent_message_chunk') =>
      updates
        .filter((one) => one.sessionId === sessionId && one.update.sessionUpdate === kind)
        .map(({ update }) => textOf(update))
        .join(''),
    stop: async () => {
      await agent.closeAll()
      connection.close()
      await dispatcher.destroy()
      await endpoint.close()
    },
  }
}

function textOf(update: SessionUpdate): string {
  const content = 'content' in update ? update.content : undefined
  return content && 'type' in content && content.type === 'text' ? content.text : ''
}

/** Waits until something has become true. */
export async function until(isTrue: () => boolean, timeoutMs = 15_000): Promise<void> {
  const deadline = Date.now() + timeoutMs
  while (!isTrue()) {
    if (Date.now() > deadline) throw new Error('waited in vain')
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
