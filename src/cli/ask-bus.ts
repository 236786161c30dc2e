/**
 * Questions to a bus over one of its doors, where its control socket is out of reach: another machine, or another user.
 *
 * Whoever asks is a client like any other, with the rights of its token or certificate. A bus that goes is not looked
 * for: the question is failed, and said.
 */
import { dial } from '../client/address.ts'
import { BusConnection } from '../client/connection.ts'
import { ControlFailure } from '../console/control-client.ts'
import { givenToken, namedAddress, type ReachOptions } from './reach.ts'

export interface Asker {
  /** Fails with what the bus answers. */
  ask(method: string, params?: object): Promise<unknown>
  close(): Promise<void>
}

/** At the door that is named. */
export async function openAsker(options: ReachOptions): Promise<Asker> {
  const address = namedAddress(options)!
  const connection = new BusConnection(
    { dial: () => dial(address), token: givenToken(options), reconnectTimeoutMs: 0 },
    {},
  )
  await connection.open().catch((error: Error) => {
    throw 'exitCode' in error ? error : new ControlFailure(error.message, { cause: error })
  })
  const lines = connection.lines()
  let asked = 0
  return {
    async ask(method, params = {}) {
      const id = ++asked
      await connection.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }))
      for (let next = await lines.next(); !next.done; next = await lines.next()) {
        const answer = JSON.parse(next.value.toString('utf8'))
        if (answer.id === id && answer.method === undefined) return resultOf(answer)
      }
      throw new ControlFailure('the connection was closed before the bus answered')
    },
    close: () => connection.close(),
  }
}

function resultOf({ result, error }: { result?: unknown; error?: { message: string; data?: unknown } }): unknown {
  if (error === undefined) return result
  throw new ControlFailure(error.message, error.data)
}
