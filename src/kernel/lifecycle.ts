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

/** A state in which nothing happens, to be filled with what does. */
function unmoved(state: WorkerState): Readonly<Record<WorkerEvent, Step>> {
  const step = stay(state)
  return {
    started: step,
    failed: step,
    broken: step,
    exited: step,
    revive: step,
    park: step,
    rest: step,
    retry: step,
    retire: step,
    stop: step,
  }
}

export const LIFECYCLE: Readonly<Record<WorkerState, Readonly<Record<WorkerEvent, Step>>>> = {
  starting: {
    ...unmoved('starting'),
    started: { next: 'ready', act: 'open' },
    failed: { next: 'dying', act: 'settle' },
    broken: { next: 'stopping', act: 'kill' },
    exited: { next: 'dying', act: 'hear-out' },
    retire: { next: 'stopping', act: 'end' },
    stop: { next: 'stopping', act: 'end' },
  },
  ready: {
    ...unmoved('ready'),
    broken: { next: 'stopping', act: 'kill' },
    exited: { next: 'dying', act: 'hear-out' },
    retire: stay('retiring'),
    stop: { next: 'stopping', act: 'end' },
  },
  retiring: {
    ...unmoved('retiring'),
    broken: { next: 'stopping', act: 'kill' },
    exited: { next: 'dying', act: 'hear-out' },
    stop: { next: 'stopping', act: 'end' },
  },
  stopping: {
    ...unmoved('stopping'),
    failed: { next: 'dying', act: 'settle' },
    broken: { next: 'stopping', act: 'kill' },
    exited: { next: 'dying', act: 'hear-out' },
    stop: { next: 'stopping', act: 'end' },
  },
  dying: {
    ...unmoved('dying'),
    broken: { next: 'dying', act: 'settle' },
    revive: { next: 'backing_off', act: 'wait' },
    park: { next: 'parked', act: 'wait' },
    rest: { next: 'stopped', act: 'leave' },
  },
  backing_off: {
    ...unmoved('backing_off'),
    rest: { next: 'stopped', act: 'leave' },
    retry: { next: 'starting', act: 'spawn' },
    retire: { next: 'stopped', act: 'leave' },
    stop: { next: 'stopped', act: 'leave' },
  },
  parked: {
    ...unmoved('parked'),
    rest: { next: 'stopped', act: 'leave' },
    retry: { next: 'starting', act: 'spawn' },
    retire: { next: 'stopped', act: 'leave' },
    stop: { next: 'stopped', act: 'leave' },
  },
  stopped: {
    ...unmoved('stopped'),
    retry: { next: 'starting', act: 'spawn' },
  },
}
