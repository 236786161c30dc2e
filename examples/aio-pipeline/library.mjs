/** The MCP server of the pipeline: it knows two facts. */
import { McpServer } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { z } from 'zod'

const FACTS = {
  otter: 'Otters hold hands while they sleep.',
  raven: 'Ravens remember who cheated them.',
}

serveStdio(() => {
  const server = new McpServer({ name: 'library', version: '1.0.0' })
  server.registerTool(
    'look_up',
    { description: 'A fact about an animal', inputSchema: z.object({ animal: z.enum(Object.keys(FACTS)) }) },
    ({ animal }) => ({ content: [{ type: 'text', text: FACTS[animal] }] }),
  )
  return server
})
