/**
 * A bus with every way of sharing, agents and traces, and the ways in which its file changes: pools that grow, that change
 * and get new workers, that come and go.
 *
 * The first variant is what the bus starts with; whoever wants it at rest goes back to it.
 */
import { fileURLToPath } from 'node:url'
import { pool } from './stage.mjs'

const CALLER = fileURLToPath(new URL('../programs/caller.mjs', import.meta.url))
const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'chaos', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
}
/** For `sed`: gives back the mark of a call and exits. A one-shot agent that costs next to nothing. */
export const echoOnce = ['-n', 's/.*"client":"\\([^"]*\\)","n":\\([0-9]*\\).*/{"result":{"client":"\\1","n":\\2}}/p']
const AGENT = { aio: { type: 'stdio' } }

/** `more` by pool id is laid over what the pools are otherwise; `extra` pools come after them. */
function variant(more = {}, extra = []) {
  const pools = [
    pool('shared', { instances: 2 }),
    pool('lease', { instances: 2, sharing: 'lease' }),
    pool('isolated', { instances: 1, sharing: 'isolated', max_instances: 24 }),
    pool('traced', { protocol: 'mcp', era: 'modern', trace: true }),
    pool('leaf', { instances: 2, ...AGENT }),
    pool('caller', { args: [CALLER], ...AGENT }),
    { id: 'once', command: 'sed', args: echoOnce, instances: 2, aio: { type: 'stdio', mode: 'oneshot' } },
  ]
  return {
    pools: [...pools.map((each) => ({ ...each, ...more[each.id] })), ...extra],
    aio: { store: { path: 'traces.db' } },
    limits: { max_restarts: 10_000, restart_window_sec: 1 },
  }
}

const changed = (round) => ({ env: { ROUND: String(round) } })

/** The file of the reload with the number `round`. */
const VARIANTS = [
  () => variant(),
  () => variant({ shared: { instances: 4 }, leaf: { instances: 3 } }),
  (round) => variant({ shared: changed(round), lease: changed(round), isolated: changed(round) }),
  () => variant({}, [pool('guest')]),
  (round) => variant({ leaf: changed(round), caller: changed(round), traced: changed(round), once: changed(round) }),
]
export const firstVariant = () => VARIANTS[0]()
export const variantOf = (round) => VARIANTS[round % VARIANTS.length](round)

const bySession = (id) => (random) => {
  const inSession = random.fraction() < 0.5
  return () => ({
    pool: id,
    inSession,
    params: { waitMs: random.between(5, 60), note: inSession && random.fraction() < 0.3 },
  })
}
const call = (agent) => (random) => () => ({ method: `${agent}::work`, params: { waitMs: random.between(5, 60) } })

/** Ways to use such a bus; each request takes its time at the worker, so that the load is bounded by how many ask. */
const USES = [
  bySession('shared'),
  bySession('lease'),
  bySession('isolated'),
  bySession('guest'),
  call('leaf'),
  call('caller'),
  call('once'),
  (random) => () => ({
    pool: 'traced',
    method: 'tools/call',
    params: { name: 'tool', _meta: META, waitMs: random.between(5, 60) },
  }),
]
export const anyUse = (random) => random.pick(USES)(random)

/** What may be answered in place of a worker's answer while workers are killed and pools change. */
export const FAIR_REASONS = [
  'worker_exited',
  'session_lost',
  'no_worker',
  'unknown_pool',
  'unknown_agent',
  'overloaded',
]
