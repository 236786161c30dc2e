/** A Chat Completions endpoint on this machine, in the place of a local model: it answers with the first sentence it was given. */
import { createServer } from 'node:http'

export async function startEndpoint() {
  const server = createServer(async (request, response) => {
    const chunks = []
    for await (const chunk of request) chunks.push(chunk)
    if (request.method !== 'POST') return response.writeHead(404).end()
    const { messages } = JSON.parse(Buffer.concat(chunks).toString())
    const { content } = messages.findLast(({ role }) => role === 'user')
    const text = typeof content === 'string' ? content : content.map((part) => part.text ?? '').join(' ')
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const word of text.split('. ')[0].split(' '))
      response.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: `${word} ` } }] })}\n\n`)
    response.end('data: [DONE]\n\n')
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { url: `http://127.0.0.1:${server.address().port}/v1`, stop: () => server.close() }
}
