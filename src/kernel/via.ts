/**
 * Through which buses a client has come, so that no message goes in circles (contract 11.6).
 *
 * A bus that uses another bus names itself, and those through which its own clients came. Whoever finds itself among them,
 * or too many, refuses; nobody else notices a loop, because ids change from bus to bus. A chain is told to the workers that
 * lead to other buses as soon as a client that came by it uses them, and to those that are started later.
 */
import type { Envelope } from '../wire/envelope.ts'
import { FIELD } from '../wire/fields.ts'
import type { Core } from './core.ts'
import type { Reason } from './faults.ts'
import { FIXED } from './limits.ts'
import type { Client } from './peers.ts'
import type { Pool } from './pools.ts'

/** The random ids of buses, in the order in which a message passes them. */
export type Via = readonly string[]

const BUS_ID = /^[\w-]{1,64}$/

/** Why nobody is let in who came this way. */
export function viaFault(via: unknown, ownId: string | undefined): Reason | undefined {
  if (!Array.isArray(via)) return 'bad_envelope'
  if (via.length > FIXED.maxVia || (ownId !== undefined && via.includes(ownId))) return 'loop_detected'
  return via.every((id) => typeof id === 'string' && BUS_ID.test(id)) ? undefined : 'bad_envelope'
}

/** Another bus says without being asked that it refuses a way: nothing else is that short and has the reason. */
export function saysLoop(line: Envelope): boolean {
  if (!line.has(FIELD.error) || line.end - line.start > FIXED.maxHeadBytes) return false
  const reason: unknown = JSON.parse(line.bytes.utf8Slice(line.start, line.end))?.error?.data?.reason
  return reason === ('loop_detected' satisfies Reason)
}

/** The client has come this way as well: it may be a bus with clients from other buses. The oldest are forgotten. */
export function cameBy(client: Client, via: Via): void {
  const known = client.vias ?? []
  if (via.length === 0 || known.some((chain) => isSame(chain, via))) return
  client.vias = [...known, via].slice(-FIXED.maxVias)
}

/** The client, or the one on whose behalf it acts, uses the pool. */
export function passOn(core: Core, client: Client, pool: Pool): void {
  const guest = client.behalf ?? client
  const { vias } = guest
  const told = pool.guests.get(guest)
  if (vias === undefined || !pool.spec.isRemote || told === vias || client.cause !== undefined) return
  pool.guests.set(guest, vias)
  for (const { id, generation, isAlive } of pool.workers) {
    if (!isAlive) continue
    for (const via of vias) if (!told?.includes(via)) core.actions.push({ do: 'pass-on', worker: id, generation, via })
  }
}

/** By which chains the clients of the pool have come; none of them twice. */
export function viasOf({ guests }: Pool): Via[] {
  return [...new Map([...guests.values()].flat().map((via) => [via.join(), via])).values()]
}

function isSame(one: Via, other: Via): boolean {
  return one.join() === other.join()
}
