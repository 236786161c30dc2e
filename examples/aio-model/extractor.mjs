/** The tool agent of the pipeline: an MCP server that takes the text out of a page. */
import { McpServer } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { z } from 'zod'

serveStdio(() => {
  const server = new McpServer({ name: 'extractor', version: '1.0.0' })
  server.registerTool(
    'extract',
    { description: 'The text of an HTML page', inputSchema: z.object({ html: z.string() }) },
    ({ html }) => ({
      content: [
        {
          type: 'text',
          text: html
            .replaceAll(/<[^>]*>/g, ' ')
            .replaceAll(/\s+/g, ' ')
            .trim(),
        },
      ],
    }),
  )
  return server
})
