/**
 * What is wrong, found in the state of the bus (contract 15.7): each with why, what to do, and where to look.
 *
 * Pure: it remembers nothing, and says since when only where that is known.
 */
import type { Status, WorkerStatus } from '../status.ts'
import type { Expiry, FileChange, OpenQuestion } from './port.ts'
import { titleOf } from './question-title.ts'

export interface Found {
  /** The same as long as it lasts. */
  readonly id: string
  readonly severity: 'error' | 'warning'
  readonly what: string
  readonly why: string | null
  readonly todo: string
  /** Below `/console/`. */
  readonly link: string
  /** Of whose matter it is; null: the bus's own, for admins. */
  readonly pool: string | null
  readonly sinceMs?: number
}

/** All that is looked at. */
export interface Evidence {
  readonly nowMs: number
  readonly status: Status
  readonly pools: readonly string[]
  /** Pools whose workers are reached at a URL. */
  readonly remote: ReadonlySet<string>
  readonly questions: readonly OpenQuestion[]
  readonly file: FileChange
  readonly expiries: readonly Expiry[]
}

const QUESTION_MS = 60_000
const FULL_SEC = 5
const SOON_MS = 14 * 24 * 60 * 60_000

const SEEKERS: readonly ((evidence: Evidence) => Found[])[] = [
  emptyPools,
  troubledWorkers,
  fullQueues,
  openQuestions,
  failingParts,
  failingNodes,
  changedFile,
  endingSoon,
]

export function findProblems(evidence: Evidence): Found[] {
  return SEEKERS.flatMap((seek) => seek(evidence))
}

const TROUBLED = new Set(['parked', 'backing_off'])
const logsOf = (pool: string): string => `logs?pool=${encodeURIComponent(pool)}`

function emptyPools({ status, pools, nowMs }: Evidence): Found[] {
  return pools
    .filter((pool) => {
      const own = status.workers.filter((worker) => worker.pool === pool)
      return own.length > 0 && own.every(({ state }) => TROUBLED.has(state))
    })
    .map((pool) => {
      const own = status.workers.filter((worker) => worker.pool === pool)
      const since = own.flatMap(({ last_exit: end }) => (end === undefined ? [] : [nowMs - end.ago_sec * 1_000]))
      return {
        id: `pool/${pool}`,
        severity: 'error',
        what: `${pool} has no worker that is ready`,
        why:
          own.length === 1 ? `its only worker is ${wordsOf(own[0]!.state)}` : `none of its ${own.length} workers runs`,
        todo: 'Its clients get no_worker: look at the log of its workers.',
        link: logsOf(pool),
        pool,
        ...(since.length === 0 ? {} : { sinceMs: Math.max(...since) }),
      }
    })
}

const wordsOf = (state: string): string => state.replaceAll('_', ' ')

function troubledWorkers({ status, remote, nowMs }: Evidence): Found[] {
  return status.workers
    .filter(({ state }) => TROUBLED.has(state))
    .map((worker) => {
      const { pool, id, last_exit: end } = worker
      const { severity, is, todo } = troubleOf(worker, remote.has(pool))
      const since = end === undefined ? {} : { sinceMs: nowMs - end.ago_sec * 1_000 }
      const what = `${pool}.${id} ${is}`
      return {
        id: `worker/${pool}/${id}`,
        severity,
        what,
        why: whyOf(worker),
        todo,
        link: logsOf(pool),
        pool,
        ...since,
      }
    })
}

function troubleOf(
  { state, never_ran: hasNeverRun }: WorkerStatus,
  isRemote: boolean,
): Pick<Found, 'severity' | 'todo'> & { is: string } {
  if (isRemote)
    return { severity: 'error', is: 'cannot be reached', todo: 'Look whether the other side is up, and at its URL.' }
  if (hasNeverRun)
    return { severity: 'error', is: 'cannot be started', todo: 'Mend its command in the configuration, then reload.' }
  if (state === 'parked')
    return {
      severity: 'error',
      is: 'has ended too often and is parked',
      todo: 'Look at its log, mend the cause, then restart it.',
    }
  return {
    severity: 'warning',
    is: 'has ended and waits to be started again',
    todo: 'Look at its log if it does not come back.',
  }
}

/** How it ended, and what it said last. */
function whyOf({ last_error: error, last_exit: end, last_stderr: line }: WorkerStatus): string | null {
  const known = [error ?? end?.how, line === undefined ? undefined : `it said: ${line}`]
  return known.filter((each) => each !== undefined).join('; ') || null
}

function fullQueues({ status, nowMs }: Evidence): Found[] {
  return status.workers
    .filter(({ full_sec: fullSec = 0 }) => fullSec >= FULL_SEC)
    .map(({ pool, id, full_sec: fullSec = 0, queue_bytes: bytes }) => ({
      id: `queue/${pool}/${id}`,
      severity: 'warning',
      what: `the queue of ${pool}.${id} is full`,
      why: `it does not read: ${bytes} bytes wait for it, and its clients are held up`,
      todo: 'Look at its log; it is ended when it stays so.',
      link: logsOf(pool),
      pool,
      sinceMs: nowMs - fullSec * 1_000,
    }))
}

function openQuestions({ questions, nowMs }: Evidence): Found[] {
  return questions
    .filter(({ sinceMs }) => nowMs - sinceMs >= QUESTION_MS)
    .map(({ session, pool, seq, sinceMs, ...question }) => ({
      id: `question/${pool}/${session}/${seq}`,
      severity: 'warning',
      what: `${session} in ${pool} waits for an answer`,
      why: titleOf(question),
      todo: 'Answer it, or end the session.',
      link: `sessions/${encodeURIComponent(session)}?pool=${encodeURIComponent(pool)}`,
      pool,
      sinceMs,
    }))
}

function failingParts({ status: { access, traces, kept_sessions: kept } }: Evidence): Found[] {
  const rows = [
    {
      is: access?.problem !== undefined,
      id: 'access',
      what: 'the access file has problems, and the old rights stay',
      why: access?.problem ?? null,
      todo: 'Mend the file: it is looked at twice a second.',
      link: 'access',
    },
    {
      is: access?.audit?.state === 'failed',
      id: 'audit',
      what: 'the audit log cannot be written',
      why: null,
      todo: 'Make room, or mend its mode; its lines wait.',
      link: 'logs',
    },
    {
      is: traces?.state === 'failed' || kept?.state === 'failed',
      id: 'store',
      what: 'the store cannot be written',
      why: null,
      todo: 'Make room, or mend its mode; calls and sessions go on without it.',
      link: 'logs',
    },
  ]
  return rows.filter(({ is }) => is).map(({ is: _is, ...row }) => ({ ...row, severity: 'error', pool: null }))
}

const FAILING_NODES = new Set(['silent', 'lost', 'incompatible'])

function failingNodes({ status: { cluster } }: Evidence): Found[] {
  if (cluster === undefined) return []
  const broker: Found[] = cluster.nats.connected
    ? []
    : [
        {
          id: 'nats',
          severity: 'error',
          what: 'the broker of the cluster cannot be reached',
          why: cluster.nats.server,
          todo: 'Look whether it is up; what is of this node goes on.',
          link: 'logs',
          pool: null,
        },
      ]
  const nodes = cluster.nodes
    .filter(({ state }) => FAILING_NODES.has(state))
    .map(({ node, state, version, heard_ms: heardMs }): Found => {
      const why = state === 'incompatible' ? `it has version ${version}` : `it was last heard ${heardMs} ms ago`
      const severity = state === 'silent' ? 'warning' : 'error'
      const todo = 'Look at that node; its sessions are not to be had until it is back.'
      return { id: `node/${node}`, severity, what: `the node ${node} is ${state}`, why, todo, link: 'logs', pool: null }
    })
  return [...broker, ...nodes]
}

function changedFile({ file: { changed, mistake } }: Evidence): Found[] {
  const about = { id: 'file', link: 'config', pool: null }
  if (mistake !== null)
    return [
      {
        ...about,
        severity: 'error',
        what: 'the configuration on disk has mistakes, and the old one stays',
        why: mistake,
        todo: 'Mend the file: stdio-bus check tells all of them.',
      },
    ]
  if (changed.length === 0) return []
  return [
    {
      ...about,
      severity: 'warning',
      what: 'the configuration on disk has changed and is not loaded',
      why: changed.join(', '),
      todo: 'Reload it.',
    },
  ]
}

function endingSoon({ expiries, nowMs }: Evidence): Found[] {
  return expiries
    .filter(({ endsAtMs }) => endsAtMs - nowMs < SOON_MS)
    .map(({ what, endsAtMs, todo, link }) => {
      const isOver = endsAtMs <= nowMs
      const day = new Date(endsAtMs).toISOString().slice(0, 10)
      const said = `${what} ${isOver ? 'has ended' : 'ends'} on ${day}`
      return {
        id: `expiry/${what}`,
        severity: isOver ? 'error' : 'warning',
        what: said,
        why: null,
        todo,
        link,
        pool: null,
      }
    })
}
