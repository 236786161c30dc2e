/** The smallest stdio agent: one line in, one line out. */
import { createInterface } from 'node:readline'

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, params } = JSON.parse(line)
  if (id === undefined) return
  console.log(JSON.stringify({ jsonrpc: '2.0', id, result: { outputs: params.inputs } }))
})
