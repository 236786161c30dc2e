/** The HTTP agent of the pipeline: it says what it thinks in two parts, as an event stream. */
import { createServer } from 'node:http'

const said = (value) => [{ type: 'text', value }]

export async function startReviewer() {
  const server = createServer(async (request, response) => {
    const parts = []
    for await (const part of request) parts.push(part)
    const { id, params } = JSON.parse(Buffer.concat(parts))
    const words = params.inputs[0].value.split(' ').length
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const send = (message) => response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id, ...message })}\n\n`)
    send({ partial: true, outputs: said(`${words} words,`) })
    send({ partial: true, outputs: said('well said.') })
    send({ result: { outputs: said(`${words} words, well said.`) } })
    response.end()
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { endpoint: `http://127.0.0.1:${server.address().port}/rpc`, stop: () => server.close() }
}
