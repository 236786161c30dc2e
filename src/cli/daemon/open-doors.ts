/**
 * The doors of a bus that asks nobody who they are: whoever is on this machine is `local`, everybody else is nobody in
 * particular (contract 9.1).
 *
 * It knows who is there, so that whoever asks from some day on (`admissions.ts`) can judge them too.
 */
import type { Identity } from '../../kernel/rights.ts'
import type { ClientId } from '../../kernel/vocabulary.ts'
import type { ConnectionInfo } from '../../transports/listener.ts'
import type { AdmissionDesk, Entrance } from './daemon.ts'

export const ANONYMOUS: Identity = {
  principal: 'anonymous',
  name: 'anonymous',
  via: 'anonymous',
  rights: { role: 'user', pools: ['*'] },
}

/** Who receives those that come through a door. */
export interface Reception extends AdmissionDesk {
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

  closed(client: ClientId): void {
    this.visitors.delete(client)
  }

  judge(): void {}
  admitted(): void {}
  turnedAway(): void {}
  done(): void {}
}
