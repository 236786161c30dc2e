// Answers every request, with the token that it brought; a line that is not JSON in UTF-8 is written to the file in argv, and ends it loudly.
import { appendFileSync } from 'node:fs'

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
let held = Buffer.alloc(0)

function take(line) {
  let message
  try {
    message = JSON.parse(utf8.decode(line))
  } catch {
    appendFileSync(process.argv[2], `${line.toString('hex')}\n`)
    process.exit(70)
  }
  const { id, method, params } = message
  if (id !== undefined && method !== undefined)
    process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, result: { token: params?.token } })}\n`)
}

process.stdin.on('data', (chunk) => {
  held = Buffer.concat([held, chunk])
  let start = 0
  for (let end = held.indexOf(10); end !== -1; end = held.indexOf(10, start)) {
    take(held.subarray(start, end))
    start = end + 1
  }
  held = held.subarray(start)
})
