/**
 * One run: so many events from a seed, then everything settles, the bus shuts down, and nothing may be left.
 *
 * Only promises of the gateway are waited for, never the system: the same seed gives the same run.
 */
import type { SimWorker } from './sim-worker.ts'
import { demand, Violation } from './violation.ts'
import { type Looking, World } from './world.ts'

export interface Plan extends Looking {
  readonly seed: number
  /** How many events before the world settles. */
  readonly events: number
  /** Only these steps, in order; left out: as many as the events need. */
  readonly steps?: readonly number[]
}

export interface Outcome {
  readonly violation: Violation | undefined
  readonly events: number
  readonly steps: number
  readonly requests: number
  readonly story: readonly string[]
  readonly reasons: ReadonlyMap<string, number>
}

const MAX_STEPS_PER_EVENT = 6
const MAX_ROUNDS = 20_000

export async function simulate(plan: Plan): Promise<Outcome> {
  const world = new World(plan.seed, plan)
  let violation: Violation | undefined
  let steps = 0
  try {
    steps = await live(world, plan, (step) => {
      steps = step
    })
    await end(world)
  } catch (error) {
    if (!(error instanceof Violation)) throw error
    violation = error
  }
  const requests = world.lines.reduce((count, { kind }) => (kind === 'request' ? count + 1 : count), 0)
  return { violation, events: world.events, steps, requests, story: world.story ?? [], reasons: world.reasons }
}

async function live(world: World, { events, steps }: Plan, note: (step: number) => void): Promise<number> {
  if (steps !== undefined) {
    for (const step of steps) if (!world.isFinished) await take(world, step)
    return steps.length
  }
  let step = 0
  for (; world.events < events && step < events * MAX_STEPS_PER_EVENT && !world.isFinished; step++) {
    note(step + 1)
    world.step(step)
    if (world.desk !== undefined) await world.rest()
  }
  return step
}

async function take(world: World, step: number): Promise<void> {
  world.step(step)
  await world.rest()
}

async function end(world: World): Promise<void> {
  world.chance.reseed(world.seed, -2)
  if (!world.scenario.endsAbruptly) {
    await settle(world, () => false)
    inspectCalm(world)
  }
  const startedMs = world.nowMs
  if (!world.isStopping) world.shutDown()
  await settle(world, () => world.isFinished)
  demand(world.isFinished, 'nothing left', 'the bus did not finish')
  const { drainTimeoutMs } = world.spec.limits
  const tookMs = world.nowMs - startedMs
  demand(tookMs <= drainTimeoutMs + 20_000, 'nothing left', `the shutdown took ${tookMs} ms`)
  inspectEnd(world)
}

/** Everybody reads, answers and asks nothing new, and the clock runs, until nothing happens any more. */
async function settle(world: World, isEnough: () => boolean): Promise<void> {
  for (let round = 0; !isEnough(); round++) {
    demand(round < MAX_ROUNDS, 'goes on', 'the world does not come to rest')
    const before = world.moves
    world.flush()
    for (const client of [...world.clients]) client.settle()
    for (const worker of [...world.workers]) worker.settle()
    world.flush()
    if (world.desk !== undefined) await world.rest()
    if (world.moves > before) continue
    if (isCalm(world) && !world.isStopping) return
    if (!world.jump()) return
    if (world.desk !== undefined) await world.rest()
  }
}

/** Nobody is owed anything or held up: what time may still bring is of no interest. */
function isCalm(world: World): boolean {
  return (
    world.desk?.isIdle !== false &&
    world.workers.every((worker) => !worker.isPaused) &&
    world.clients.every(
      (client) =>
        client.owed <= client.cancelledCount && !client.isPaused && client.pipe.isIdle && client.sending.length === 0,
    )
  )
}

function inspectCalm(world: World): void {
  world.desk?.inspectCalm()
  for (const client of world.clients) {
    const owed = client.owed - client.cancelledCount
    demand(
      owed <= 0 || !client.isListening,
      'answered once',
      () => `${client} is owed ${owed} answers and nothing happens any more`,
    )
  }
  for (const worker of world.workers) {
    if (!worker.isAlive || worker.isStopping || worker.stdout.length > 0) continue
    inspectLeft(worker)
    demand(
      worker.questions.size === 0,
      'questions answered',
      () => `${worker} has asked ${[...worker.questions.keys()]} and nothing happens any more`,
    )
  }
}

/** Contract 7.3: the sessions of clients that have gone are cancelled and closed; version 2 always can. */
function inspectLeft(worker: SimWorker): void {
  const { version, spec, temper, world } = worker
  if (version === undefined || version < 2 || spec.sharing === 'isolated' || temper === 'lying') return
  for (const [session, owner] of worker.owners) {
    const isOthers = (worker.users.get(session)?.size ?? 0) > 1 || world.contested.has(session)
    if (!owner.isOver || owner.isListening || isOthers || owner.claimed.has(session)) continue
    const isTold = worker.closedByBus.has(session)
    demand(isTold, 'questions answered', () => `${owner} has gone, and ${worker} was not told to close ${session}`)
    // What ended with the right to its pool was closed under a client that stayed: that ends its turn (contract 9.10).
    const hasTurn = worker.prompted.has(session) && !owner.endedEarly.has(session)
    const isCancelled = !hasTurn || worker.cancelledByBus.has(session)
    demand(isCancelled, 'questions answered', () => `${owner} has gone, and ${worker} goes on in ${session}`)
  }
}

function inspectEnd(world: World): void {
  const { core } = world
  world.desk?.inspectEnd()
  if (core === undefined) return
  demand(core.clients.size === 0, 'nothing left', `${core.clients.size} clients are left`)
  demand(core.exchanges.size === 0, 'nothing left', `${core.exchanges.size} exchanges are left`)
  demand(core.sessions.size === 0, 'nothing left', `${core.sessions.size} sessions are left`)
  demand(core.owed.size === 0, 'nothing left', `${core.owed.size} requests are left`)
  demand(core.retainedBytes === 0, 'nothing left', `${core.retainedBytes} bytes are retained`)
  for (const worker of core.workers.values())
    demand(worker.state === 'stopped', 'nothing left', `worker ${worker.id} is ${worker.state}`)
  for (const pool of core.pools.values()) {
    const waiting = pool.waiting.routes.size + pool.leases.routes.size
    demand(waiting === 0, 'nothing left', `${waiting} messages wait in pool ${pool.spec.id}`)
  }
}
