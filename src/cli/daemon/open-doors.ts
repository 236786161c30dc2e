/**
 * The doors of a bus that asks nobody who they are: whoever is on this machine is `local`, everybody else is nobody in
 * particular (contract 9.1).
 *
 * It knows who is there, so that whoever asks from some day on (`admissions.ts`) can judge them too.
 */

import type { PeerCertificate } from 'node:tls'
import type { AuditEvent } from '../../access/audit-line.ts'
import type { Refusal as Rebuff } from '../../access/identity.ts'
import type { RefusalPace } from '../../access/refusals.ts'
import type { Sighting } from '../../access/sightings.ts'
import { agentIn } from '../../cluster/names.ts'
import type { Opening } from '../../cluster/opening.ts'
import { type Identity, LOCAL_IDENTITY, matchesAny, type Rights, type Role } from '../../kernel/rights.ts'
import type { ClientId, Door } from '../../kernel/vocabulary.ts'
import type { ConnectionInfo } from '../../transports/listener.ts'
import type { AdmissionDesk } from './desks.ts'
import type { Entrance } from './ends.ts'

export const ANONYMOUS: Identity = {
  principal: 'anonymous',
  name: 'anonymous',
  via: 'anonymous',
  rights: { role: 'user', pools: ['*'] },
}

/** The user of this machine, with no more than this role. */
export function localIdentity(role: Role): Identity {
  return { ...LOCAL_IDENTITY, rights: { ...LOCAL_IDENTITY.rights, role } }
}

/** Whom another node has judged; an entry of its name here narrows what it may do. It is never more than a user. */
export function identityFromNode(who: Opening, node: string, own?: Rights): Identity {
  const { principal, name, role, pools, tools } = who
  const narrowed = own?.tools === undefined ? tools : { ...own.tools, ...(tools === undefined ? {} : { also: tools }) }
  const rights: Rights = {
    role: own?.role === 'observer' ? own.role : role,
    pools: own === undefined ? pools : narrowPools(who, own),
    ...(narrowed === undefined ? {} : { tools: narrowed }),
    ...(own?.environmentFor === undefined ? {} : { environmentFor: own.environmentFor }),
  }
  return { principal, name, via: 'cluster', rights, apart: `from ${node}` }
}

/** What both say; where neither leaves it to the other, that is the pool it has come for, or none. */
function narrowPools({ pool: comesFor, pools }: Opening, own: Rights): readonly string[] {
  const pool = agentIn(comesFor) ?? comesFor
  if (pools.includes('*')) return own.pools
  if (own.pools.includes('*')) return pools
  return matchesAny(pools, pool) && matchesAny(own.pools, pool) ? [pool] : []
}

/** What a request over the web shows of who has sent it; `resource` is what was asked for, as the public knows it. */
export interface ShownOverWeb {
  readonly token: string | undefined
  readonly certificate: PeerCertificate | undefined
  readonly listener: string
  readonly peer: string
  readonly resource: string | undefined
}

/** Who somebody is, and by what that can be looked up again; or why that is not proved. */
export type Received =
  | { readonly identity: Identity; readonly proof: unknown }
  | { readonly refusal: Rebuff; readonly pace: RefusalPace }

/** Who receives those that come through a door. */
export interface Reception extends AdmissionDesk {
  /** Who has sent a request over the web (contract 9.4). */
  receiveOverWeb(shown: ShownOverWeb): Received | Promise<Received>
  /** Whoever was given a code of the console by this machine's own user (contract 15.2). */
  receiveLocal(role: Role): { readonly identity: Identity; readonly proof: unknown }
  /** Somebody did something through the console (contract 15.5). */
  acted(identity: Identity, method: string, outcome: string): void
  /** A door has refused somebody what it may not, before the kernel knew of it. */
  denied(identity: Identity, about: Pick<AuditEvent, 'door' | 'peer' | 'pool' | 'method'>): void
  /** When and how somebody of this name was last there (contract 15.12). */
  sighted(name: string): Sighting | undefined
  /** The scope to ask for by whoever may not what others may (contract 9.14). */
  scopeThatWouldDo(mayDo: (rights: Rights) => boolean): string | undefined
  /** Whether what was proved then is still so (contract 9.5). */
  stillHolds(proof: unknown): boolean
  /** The kernel is about to know of somebody who came like that. */
  openedOverWeb(client: ClientId, door: Door, peer: string, proof: unknown): void
  /** It has shown this since, and lives as long as what holds longest. */
  renewedOverWeb(client: ClientId, proof: unknown): void
  /** Somebody whom another node has judged (contract 14.9). */
  receiveFromNode(who: Opening, node: string): Identity
  /** The kernel is about to know of it. */
  openedFromNode(client: ClientId, node: string): void
  /** How somebody who comes like this is received. */
  receive(info: ConnectionInfo): Pick<Entrance, 'identity' | 'mustProve' | 'from'>
  /** The kernel is about to know of it. */
  opened(client: ClientId, info: ConnectionInfo): void
}

export class OpenDoors implements Reception {
  readonly visitors = new Map<ClientId, ConnectionInfo>()

  receive({ door }: ConnectionInfo): Pick<Entrance, 'identity'> {
    return door === 'unix' || door === 'stdio' ? {} : { identity: ANONYMOUS }
  }

  opened(client: ClientId, info: ConnectionInfo): void {
    this.visitors.set(client, info)
  }

  receiveOverWeb(): Received {
    return { identity: ANONYMOUS, proof: undefined }
  }

  receiveLocal(role: Role): { readonly identity: Identity; readonly proof: undefined } {
    return { identity: localIdentity(role), proof: undefined }
  }

  stillHolds(): boolean {
    return true
  }

  openedOverWeb(client: ClientId, door: Door, peer: string): void {
    this.visitors.set(client, { door, isLocal: false, listener: '', peer })
  }

  renewedOverWeb(): void {}

  receiveFromNode(who: Opening, node: string): Identity {
    return identityFromNode(who, node)
  }

  openedFromNode(client: ClientId, node: string): void {
    this.visitors.set(client, { door: 'cluster', isLocal: false, listener: '', peer: node })
  }

  closed(client: ClientId): void {
    this.visitors.delete(client)
  }

  acted(): void {}
  denied(): void {}

  sighted(): undefined {}
  scopeThatWouldDo(): undefined {}

  judge(): void {}
  admitted(): void {}
  turnedAway(): void {}
  done(): void {}
}
