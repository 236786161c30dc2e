/** The connection as the pair of web streams that the ACP SDK takes: messages in, messages out, one line each. */
import type { AnyMessage, Stream } from '@agentclientprotocol/sdk'
import type { LineChannel } from './connection.ts'

export function acpStream(channel: LineChannel): Stream {
  const readable = new ReadableStream<AnyMessage>({
    async pull(controller) {
      const line = await channel.take()
      if (line === undefined) controller.close()
      else controller.enqueue(JSON.parse(line.toString('utf8')))
    },
    cancel: () => channel.close(),
  })
  const writable = new WritableStream<AnyMessage>({
    write: (message) => channel.send(JSON.stringify(message)),
    close: () => channel.close(),
    abort: () => channel.close(),
  })
  return { readable, writable }
}
