/** What is found to be wrong, one seeker after the other (contract 15.7). */
import { describe, expect, it } from 'vitest'
import { verifies } from '../../../test/conformance/verifies.ts'
import type { Status, WorkerStatus } from '../status.ts'
import type { OpenQuestion } from './port.ts'
import { type Evidence, findProblems } from './problems.ts'

const NOW = Date.parse('2030-01-15T12:00:00Z')
const DAY_MS = 24 * 60 * 60_000

const worker = (more: Partial<WorkerStatus> = {}): WorkerStatus => ({
  id: 0,
  pool: 'a',
  state: 'ready',
  generation: 1,
  restarts: 0,
  queue_bytes: 0,
  outstanding: 0,
  sessions: 0,
  requests: 0,
  pid: 7,
  ...more,
})

const problemsOf = ({ status = {}, ...more }: Partial<Omit<Evidence, 'status'>> & { status?: object }) =>
  findProblems({
    nowMs: NOW,
    pools: ['a'],
    remote: new Set(),
    questions: [],
    file: { changed: [], mistake: null },
    expiries: [],
    status: { workers: [worker()], ...status } as unknown as Status,
    ...more,
  })

const exit = { reason: 'worker_exited', how: 'exit code 3', ago_sec: 4 }
const idsOf = (found: readonly { readonly id: string }[]): string[] => found.map(({ id }) => id)

describe('problems', () => {
  it('are none where all is well', () => {
    expect(problemsOf({})).toEqual([])
  })

  it('of workers say how they ended, what they said last and since when', () => {
    verifies('15.7-workers')
    const troubled = worker({ state: 'parked', last_error: 'it keeps ending', last_exit: exit, last_stderr: 'no key' })
    const [pool, parked] = problemsOf({ status: { workers: [troubled] } })
    expect(pool).toMatchObject({ id: 'pool/a', severity: 'error', what: 'a has no worker that is ready' })
    expect(parked).toMatchObject({
      severity: 'error',
      what: 'a.0 has ended too often and is parked',
      why: 'it keeps ending; it said: no key',
      link: 'logs?pool=a',
      sinceMs: NOW - 4_000,
    })
    const [backing] = problemsOf({
      status: { workers: [worker({ state: 'backing_off', last_exit: exit }), worker({ id: 1 })] },
    })
    expect(backing).toMatchObject({ severity: 'warning', why: 'exit code 3' })
    const missing = worker({ state: 'parked', last_error: 'no such file', never_ran: true })
    expect(problemsOf({ status: { workers: [missing] } })[1]).toMatchObject({ what: 'a.0 cannot be started' })
    const far = problemsOf({ status: { workers: [missing] }, remote: new Set(['a']) })
    expect(far[1]).toMatchObject({ what: 'a.0 cannot be reached', why: 'no such file' })
  })

  it('are a queue that is full for five seconds and a question that is open for a minute', () => {
    verifies('15.7-waiting')
    const full = (sec: number) => problemsOf({ status: { workers: [worker({ full_sec: sec, queue_bytes: 9 })] } })
    expect(full(4)).toEqual([])
    expect(full(5)).toMatchObject([{ id: 'queue/a/0', severity: 'warning', sinceMs: NOW - 5_000 }])
    const params = '{"toolCall":{"title":"Run rm -rf build"}}'
    const question = { session: 's/1', pool: 'a', seq: 4, method: 'session/request_permission', params } as OpenQuestion
    const asked = (agoMs: number) => problemsOf({ questions: [{ ...question, sinceMs: NOW - agoMs }] })
    expect(asked(59_999)).toEqual([])
    const link = 'sessions/s%2F1?pool=a'
    expect(asked(60_000)).toMatchObject([{ why: 'Run rm -rf build', link, pool: 'a', sinceMs: NOW - 60_000 }])
  })

  it('are parts of the bus that fail: files, stores, nodes, the broker', () => {
    verifies('15.7-parts')
    const failed = { state: 'failed' }
    const access = { problem: 'line 3', audit: failed }
    expect(idsOf(problemsOf({ status: { access, traces: failed } }))).toEqual(['access', 'audit', 'store'])
    expect(idsOf(problemsOf({ status: { kept_sessions: failed } }))).toEqual(['store'])
    const nodes = ['ready', 'leaving', 'silent', 'lost', 'incompatible'].map((state) => ({ node: state, state }))
    const cluster = { nats: { connected: false, server: 'n:1' }, nodes }
    expect(problemsOf({ status: { cluster } }).map(({ id, severity }) => `${id} ${severity}`)).toEqual([
      'nats error',
      'node/silent warning',
      'node/lost error',
      'node/incompatible error',
    ])
    expect(problemsOf({ file: { changed: ['pools: a'], mistake: null } })).toMatchObject([
      { id: 'file', severity: 'warning', why: 'pools: a' },
    ])
    expect(problemsOf({ file: { changed: [], mistake: 'line 2' } })).toMatchObject([
      { severity: 'error', why: 'line 2' },
    ])
  })

  it('are what ends within fourteen days, and what has ended', () => {
    verifies('15.7-ending')
    const ending = (days: number) =>
      problemsOf({
        expiries: [{ what: 'the token of ann', endsAtMs: NOW + days * DAY_MS, todo: 'renew', link: 'access' }],
      })
    expect(ending(14)).toEqual([])
    expect(ending(13)).toMatchObject([{ severity: 'warning', what: 'the token of ann ends on 2030-01-28', pool: null }])
    expect(ending(-1)).toMatchObject([{ severity: 'error', what: 'the token of ann has ended on 2030-01-14' }])
  })
})
