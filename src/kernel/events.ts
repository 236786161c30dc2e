/**
 * What the kernel is told and what it asks for, as plain data: both can be recorded, compared and replayed.
 *
 * The kernel never calls the shell. It is given one event with the time, and answers with actions; the bytes to be written
 * wait in the outboxes of the peers that `write` names.
 */
import type { BusSpec, ClientId, Door, PoolId, WorkerId } from './vocabulary.ts'

export type BusEvent =
  | { readonly type: 'client-opened'; readonly client: ClientId; readonly door: Door; readonly pool?: PoolId }
  | { readonly type: 'client-received'; readonly client: ClientId; readonly bytes: Buffer }
  /** The client has ended its writing side. */
  | { readonly type: 'client-ended'; readonly client: ClientId }
  /** The connection is wholly gone. */
  | { readonly type: 'client-closed'; readonly client: ClientId }
  | { readonly type: 'client-wrote'; readonly client: ClientId; readonly pendingBytes: number }
  | { readonly type: 'worker-spawned'; readonly worker: WorkerId; readonly generation: number; readonly pid: number }
  | {
      readonly type: 'worker-failed'
      readonly worker: WorkerId
      readonly generation: number
      readonly why: string
      readonly isFinal?: boolean
    }
  | { readonly type: 'worker-received'; readonly worker: WorkerId; readonly generation: number; readonly bytes: Buffer }
  /** Its stdout has ended, or its stdin is broken. */
  | {
      readonly type: 'worker-silent'
      readonly worker: WorkerId
      readonly generation: number
      readonly pipe: 'stdin' | 'stdout'
    }
  | {
      readonly type: 'worker-exited'
      readonly worker: WorkerId
      readonly generation: number
      readonly code: number | null
      readonly signal: string | null
    }
  | {
      readonly type: 'worker-wrote'
      readonly worker: WorkerId
      readonly generation: number
      readonly pendingBytes: number
    }
  | { readonly type: 'tick' }
  | { readonly type: 'reload'; readonly spec: BusSpec }
  | { readonly type: 'shutdown'; readonly at: 'leisure' | 'once' }

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

export type Action =
  | { readonly do: 'pause-client' | 'resume-client'; readonly client: ClientId }
  | { readonly do: 'pause-worker' | 'resume-worker'; readonly worker: WorkerId; readonly generation: number }
  /** `flush`: end the writing side once all is written; `drop`: at once. */
  | { readonly do: 'close-client'; readonly client: ClientId; readonly how: 'flush' | 'drop' }
  | {
      readonly do: 'spawn-worker'
      readonly worker: WorkerId
      readonly generation: number
      readonly pool: PoolId
      readonly revision: string
    }
  /** `end`: the ladder from the end of stdin on; `kill`: from SIGTERM on; `bury`: what is left of the group. */
  | {
      readonly do: 'stop-worker'
      readonly worker: WorkerId
      readonly generation: number
      readonly how: 'end' | 'kill' | 'bury'
    }
  | { readonly do: 'stop-accepting' }
  | {
      readonly do: 'log'
      readonly level: LogLevel
      readonly text: string
      readonly about: Readonly<Record<string, unknown>>
    }
  /** All workers and clients are gone: the program may exit. */
  | { readonly do: 'finished' }
