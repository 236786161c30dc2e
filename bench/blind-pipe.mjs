/**
 * The limit the bus is measured against: pipes a socket to one child's stdin and the child's stdout back, looking at nothing.
 *
 * No framing, no routing, no bound but Node's own. One client at a time; the child outlives it.
 * Usage: node blind-pipe.mjs UNIX_PATH TCP_PORT COMMAND [ARGUMENT ...]
 *        node blind-pipe.mjs --tls CERT KEY TCP_PORT COMMAND [ARGUMENT ...]
 */
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'

const given = process.argv.slice(2)
const tls = given[0] === '--tls' ? given.splice(0, 3) : undefined
const unixPath = tls ? undefined : given.shift()
const [tcpPort, command, ...args] = given
const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] })
child.on('exit', (code, signal) => {
  if (!stopping) throw new Error(`the child of the blind pipe ended (${code ?? signal})`)
})
let stopping = false

function serve(socket) {
  socket.setNoDelay(true)
  socket.pipe(child.stdin, { end: false })
  child.stdout.pipe(socket)
  socket.on('error', () => socket.destroy())
  socket.on('close', () => child.stdout.unpipe(socket))
}

const doors = tls
  ? [createTlsServer({ cert: readFileSync(tls[1]), key: readFileSync(tls[2]) }, serve)]
  : [createServer(serve).listen(unixPath), createServer(serve)]
doors.at(-1).listen(Number(tcpPort), '127.0.0.1')
process.on('SIGTERM', () => {
  stopping = true
  for (const door of doors) door.close()
  child.stdin.end()
  child.on('exit', () => process.exit(0))
})
