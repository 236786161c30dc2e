/**
 * The life of a worker slot as a table of state and event; the compiler refuses a missing cell.
 *
 * It says what follows and what is to be done, and does nothing. An event that means nothing in a state keeps the state:
 * a late timer or a second exit is no mistake of anybody. `act` names a deed of `supervisor.ts`.
 */
export type WorkerState =
  | 'starting'
  | 'ready'
  | 'retiring'
  | 'stopping'
  | 'dying'
  | 'backing_off'
  | 'parked'
  | 'stopped'

export type WorkerEvent =
  /** The process runs and, where its protocol has a handshake, has answered it. */
  | 'started'
  /** The command could not be executed. */
  | 'failed'
  /** It must go: its pipes are broken, it is stuck, or it broke a limit. */
  | 'broken'
  | 'exited'
  /** Its last words are read; what becomes of the slot is one of the next three. */
  | 'revive'
  | 'park'
  | 'rest'
  /** The back-off is over, or the restart window has room again. */
  | 'retry'
  /** Nothing new for it; it ends when its sessions do. */
  | 'retire'
  | 'stop'

export type Act = 'open' | 'spawn' | 'kill' | 'end' | 'hear-out' | 'wait' | 'settle' | 'leave'

export interface Step {
  readonly next: WorkerState
  readonly act?: Act
}

const stay = (next: WorkerState): Step => ({ next })

export const LIFECYCLE: Readonly<Record<WorkerState, Readonly<Record<WorkerEvent, Step>>>> = {
  starting: {
    started: { next: 'ready', act: 'open' },
    failed: { next: 'dying', act: 'settle' },
    broken: { next: 'stopping', act: 'kill' },
    exited: { next: 'dying', act: 'hear-out' },
    revive: stay('starting'),
    park: stay('starting'),
    rest: stay('starting'),
    retry: stay('starting'),
    retire: { next: 'stopping', act: 'end' },
    stop: { next: 'stopping', act: 'end' },
  },
  ready: {
    started: stay('ready'),
    failed: stay('ready'),
    broken: { next: 'stopping', act: 'kill' },
    exited: { next: 'dying', act: 'hear-out' },
    revive: stay('ready'),
    park: stay('ready'),
    rest: stay('ready'),
    retry: stay('ready'),
    retire: stay('retiring'),
    stop: { next: 'stopping', act: 'end' },
  },
  retiring: {
    started: stay('retiring'),
    failed: stay('retiring'),
    broken: { next: 'stopping', act: 'kill' },
    exited: { next: 'dying', act: 'hear-out' },
    revive: stay('retiring'),
    park: stay('retiring'),
    rest: stay('retiring'),
    retry: stay('retiring'),
    retire: stay('retiring'),
    stop: { next: 'stopping', act: 'end' },
  },
  stopping: {
    started: stay('stopping'),
    failed: { next: 'dying', act: 'settle' },
    broken: { next: 'stopping', act: 'kill' },
    exited: { next: 'dying', act: 'hear-out' },
    revive: stay('stopping'),
    park: stay('stopping'),
    rest: stay('stopping'),
    retry: stay('stopping'),
    retire: stay('stopping'),
    stop: { next: 'stopping', act: 'end' },
  },
  dying: {
    started: stay('dying'),
    failed: stay('dying'),
    broken: { next: 'dying', act: 'settle' },
    exited: stay('dying'),
    revive: { next: 'backing_off', act: 'wait' },
    park: { next: 'parked', act: 'wait' },
    rest: { next: 'stopped', act: 'leave' },
    retry: stay('dying'),
    retire: stay('dying'),
    stop: stay('dying'),
  },
  backing_off: {
    started: stay('backing_off'),
    failed: stay('backing_off'),
    broken: stay('backing_off'),
    exited: stay('backing_off'),
    revive: stay('backing_off'),
    park: stay('backing_off'),
    rest: { next: 'stopped', act: 'leave' },
    retry: { next: 'starting', act: 'spawn' },
    retire: { next: 'stopped', act: 'leave' },
    stop: { next: 'stopped', act: 'leave' },
  },
  parked: {
    started: stay('parked'),
    failed: stay('parked'),
    broken: stay('parked'),
    exited: stay('parked'),
    revive: stay('parked'),
    park: stay('parked'),
    rest: { next: 'stopped', act: 'leave' },
    retry: { next: 'starting', act: 'spawn' },
    retire: { next: 'stopped', act: 'leave' },
    stop: { next: 'stopped', act: 'leave' },
  },
  stopped: {
    started: stay('stopped'),
    failed: stay('stopped'),
    broken: stay('stopped'),
    exited: stay('stopped'),
    revive: stay('stopped'),
    park: stay('stopped'),
    rest: stay('stopped'),
    retry: { next: 'starting', act: 'spawn' },
    retire: stay('stopped'),
    stop: stay('stopped'),
  },
}
