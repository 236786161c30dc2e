/**
 * The connection as the pair of web streams that the ACP SDK takes: messages in, messages out, one line each.
 *
 * The SDK's type of stream is met by shape and not imported, so that nobody must install it for our types.
 */
import type { LineChannel } from './connection.ts'

export interface AcpStream {
  // biome-ignore lint/suspicious/noExplicitAny: the SDK has its own type of message
  readonly readable: ReadableStream<any>
  // biome-ignore lint/suspicious/noExplicitAny: the same
  readonly writable: WritableStream<any>
}

export function acpStream(channel: LineChannel): AcpStream {
  const readable = new ReadableStream<object>({
    async pull(controller) {
      const line = await channel.take()
      if (line === undefined) controller.close()
      else controller.enqueue(JSON.parse(line.toString('utf8')))
    },
    cancel: () => channel.close(),
  })
  const writable = new WritableStream<object>({
    write: (message) => channel.send(JSON.stringify(message)),
    close: () => channel.close(),
    abort: () => channel.close(),
  })
  return { readable, writable }
}
