/**
 * What the runtime itself costs: a server that gives every chunk back as it came, reading into one buffer for all connections. The bus
 * cannot be cheaper per line than this is per message, where every line comes alone.
 *
 * Usage: node bench/floor.mjs UNIX_PATH TCP_PORT
 */
import { createServer, Socket } from 'node:net'

const [unixPath, tcpPort] = process.argv.slice(2)
if (tcpPort === undefined) {
  console.log('Usage: node bench/floor.mjs UNIX_PATH TCP_PORT')
  process.exit(process.argv.includes('--help') ? 0 : 2)
}

const memory = Buffer.allocUnsafeSlow(64 * 1024)
const written = () => {}

/** A socket is told at its birth where reads go: it is made anew on the handle of the accepted one. */
function serve(accepted) {
  const { _handle: handle } = accepted
  const callback = (length) => {
    socket.write(Buffer.from(memory.subarray(0, length)), written)
    return true
  }
  const socket = new Socket({ handle, onread: { buffer: memory, callback } })
  accepted._handle = null
  accepted.destroy()
  socket.setNoDelay(true)
  socket.on('error', () => socket.destroy())
  socket.resume()
}

const doors = [createServer(serve).listen(unixPath), createServer(serve).listen(Number(tcpPort), '127.0.0.1')]
process.on('SIGTERM', () => {
  for (const door of doors) door.close()
  process.exit(0)
})
