/**
 * What the bus must be holding, counted from outside: requests that it has taken, that no worker has been handed and no
 * client has been told of, are in it somewhere, byte for byte; so it must count at least these (contract 8.3).
 */
import type { Core } from '../../src/kernel/core.ts'
import { type ClientLine, serialsIn } from './line.ts'
import type { SimClient } from './sim-client.ts'
import { demand } from './violation.ts'
import type { World } from './world.ts'

/** What a worker does not know may have been cut out, and an id be shorter (contract 4.2.3). */
const CUT_BYTES = 70

/** All that was queued has been handed over. */
export function demandCounted(world: World, core: Core): void {
  const handed = new Set(world.workers.flatMap(({ unread }) => serialsIn(unread)))
  let bytes = 0
  for (const client of world.clients) {
    // Who has not heard all may have been told.
    if (!client.isListening || !client.hasHeardAll) continue
    for (const line of waitingOf(client)) if (!handed.has(line.serial)) bytes += line.text.length - CUT_BYTES
  }
  const { retainedBytes } = core
  demand(
    retainedBytes >= bytes,
    'bounded',
    () => `the bus holds ${bytes} bytes of requests and counts ${retainedBytes}`,
  )
}

function* waitingOf({ open, vague }: SimClient): Generator<ClientLine> {
  for (const [key, lines] of open) {
    if (vague.has(key)) continue
    for (const line of lines) if (isInside(line)) yield line
  }
}

/** The gateway holds calls as objects, what is cancelled is owed to nobody, and nobody knows whose a handshake was. */
function isInside(line: ClientLine): boolean {
  if (!line.isConsumed || line.isCancelled || line.isCall || line.method === 'initialize') return false
  if (line.method.startsWith('bus::')) return false
  // Of somebody who has proved nothing the bus keeps no line, only that it is owed an answer.
  if (line.taken !== undefined && line.taken.principal === undefined) return false
  return line.receiver === undefined && line.lostWith === undefined
}
