/** An MCP server with the tool, the document and the model of the whitepaper's examples. */
import { McpServer } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { z } from 'zod'

const text = (value) => ({ content: [{ type: 'text', text: value }] })

serveStdio(() => {
  const server = new McpServer({ name: 'seed', version: '1.0.0' })
  server.registerTool(
    'calculate_area',
    { description: 'The area of a rectangle', inputSchema: z.object({ x: z.number(), y: z.number() }) },
    ({ x, y }) => text(String(x * y)),
  )
  server.registerTool(
    'complete',
    { description: 'Answers a conversation', inputSchema: z.object({ messages: z.array(z.any()) }) },
    ({ messages }) =>
      text(`Read ${messages.length} message(s); the last is ${messages.at(-1).content.text.length} characters`),
  )
  server.registerResource('spec', 'doc-001:', { title: 'Spec Sheet', mimeType: 'application/pdf' }, async (uri) => ({
    contents: [{ uri: uri.href, mimeType: 'application/pdf', blob: 'JVBERg==' }],
  }))
  return server
})
