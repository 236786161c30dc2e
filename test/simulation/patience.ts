/**
 * Judges whom the bus gives up as stuck or stalled (contract 7.2, 8.3): by the clock of the world, which runs for a peer while
 * what was written for it is not taken, and stands still while the bus itself does not read from it.
 *
 * The bus looks now and then, so what it measures may differ from what is measured here by a part of the time allowed.
 */
import type { Peer } from '../../src/kernel/peers.ts'
import type { SimClient } from './sim-client.ts'
import type { SimWorker } from './sim-worker.ts'
import { demand } from './violation.ts'
import type { World } from './world.ts'

/** How much earlier than allowed the bus may be, for it does not look all the time. */
const SHARE = 0.5
const SHARE_OF_HANG = 0.7

/** So much time has gone by, and nothing else has happened. */
export function passTime({ core, clients, workers, isFlushed }: World, ms: number): void {
  for (const { id, pipe } of clients) pipe.age(ms, isFlushed, isTimed(core?.clients.get(id)))
  for (const { slot, stdin } of workers) stdin.age(ms, isFlushed, isTimed(core?.workers.get(slot)))
}

/** Nobody holds it up but, in the end, itself; a worker is not to blame for a client on the way. */
function isTimed(peer: Peer | undefined): boolean {
  if (peer?.blockedOn === undefined) return true
  const way: Peer[] = []
  let next = peer.blockedOn.owner
  while (next !== undefined && next !== peer && !way.includes(next)) {
    way.push(next)
    next = next.blockedOn?.owner
  }
  return next === peer && (peer.kind === 'client' || way.every(({ kind }) => kind === 'worker'))
}

/** The bus closes a client whose queue stayed full. */
export function judgeStuck(world: World, client: SimClient): void {
  const { backpressureTimeoutMs, blockingTimeoutMs } = world.spec.limits
  // Only who holds up a worker is closed before its time.
  const isBlocking = world.workers.some(({ isPaused }) => isPaused)
  const allowedMs = isBlocking ? Math.min(backpressureTimeoutMs, blockingTimeoutMs) : backpressureTimeoutMs
  // Who has left takes nothing more.
  if (client.hasLeft) return
  demand(
    client.pipe.fullMs >= allowedMs * SHARE,
    'justified',
    () => `${client} was closed as stuck after ${client.pipe.fullMs} of ${allowedMs} ms`,
  )
}

/** The bus ends a worker that owed answers and was silent, or did not read. */
export function judgeStalled(world: World, worker: SimWorker, why: string): void {
  worker.stalledAtMs = world.nowMs
  if (why.includes('silent')) return judgeSilent(world, worker)
  if (!world.isRoomy || !worker.isAlive) return
  const { backpressureTimeoutMs } = worker.spec.limits
  demand(
    worker.stdin.fullMs >= backpressureTimeoutMs * SHARE,
    'justified',
    () => `${worker} was ended as stuck after ${worker.stdin.fullMs} of ${backpressureTimeoutMs} ms`,
  )
}

function judgeSilent(world: World, worker: SimWorker): void {
  const { hangTimeoutMs } = worker.spec
  const quietMs = world.nowMs - worker.movedAtMs
  demand(
    hangTimeoutMs > 0 && quietMs >= hangTimeoutMs * SHARE_OF_HANG && !worker.isPaused,
    'justified',
    () => `${worker} was ended as silent after ${quietMs} of ${hangTimeoutMs} ms${worker.isPaused ? ', unread' : ''}`,
  )
  const owes = worker.open.size + worker.unansweredIds.size + worker.vagueIds.size + worker.stdout.length > 0
  demand(owes || !worker.stdin.isIdle, 'justified', () => `${worker} was ended as silent and owed nothing`)
}
