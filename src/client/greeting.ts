/**
 * What a new connection says to the bus before this side speaks: who it is, which pool it is for, and, to a bus that came
 * back, the recorded introduction (contract 6.3, 6.10, 9.3).
 *
 * Its requests have ids of their own and their answers are kept from this side. Invariant: when it is done, the bus has
 * agreed to all of it; a refusal is an error.
 */
import type { Duplex } from 'node:stream'
import type { Crossing } from './crossing.ts'
import { BusUnavailable } from './errors.ts'
import { readRefusal } from './refusal.ts'
import type { TurnedAway } from './turned-away.ts'

const OPEN_TIMEOUT_MS = 10_000
/** A worker may be starting when it is introduced to again. */
const INTRODUCE_TIMEOUT_MS = 60_000

const OPEN_ID = 'stdio-bus/link/open'
const INTRODUCE_ID = 'stdio-bus/link/initialize'

/** What `bus::open` is told; nothing of it: nothing is said. */
export interface Opening {
  readonly pool?: string | undefined
  readonly token?: string | undefined
}

/** A connection, the books on what crosses it, and whether it was closed because of who we are. */
export interface Visit {
  readonly socket: Duplex
  readonly crossing: Crossing
  readonly turnedAway: TurnedAway
}

export async function greet(visit: Visit, { pool, token }: Opening): Promise<void> {
  const { socket, crossing } = visit
  if (pool !== undefined || token !== undefined) {
    const open = { jsonrpc: '2.0', id: OPEN_ID, method: 'bus::open', params: { pool, token } }
    await ask(visit, OPEN_ID, Buffer.from(`${JSON.stringify(open)}\n`), OPEN_TIMEOUT_MS)
  }
  const { introduction } = crossing
  const again = introduction.repeat(JSON.stringify(INTRODUCE_ID))
  if (again === undefined) return
  await ask(visit, INTRODUCE_ID, again, INTRODUCE_TIMEOUT_MS)
  if (introduction.confirmation !== undefined) socket.write(introduction.confirmation)
}

function ask({ socket, crossing, turnedAway }: Visit, id: string, line: Buffer, timeoutMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (error?: Error): void => {
      clearTimeout(timer)
      socket.off('close', broken)
      crossing.own.delete(id)
      if (error === undefined) resolve()
      else reject(error)
    }
    const broken = (): void => {
      settle(crossing.lastWord ?? turnedAway() ?? new BusUnavailable('the bus closed the connection at once'))
    }
    const timer = setTimeout(() => settle(new BusUnavailable('the bus does not answer')), timeoutMs)
    socket.once('close', broken)
    crossing.own.set(id, (answer) => settle(readRefusal(answer)))
    socket.write(line)
  })
}
