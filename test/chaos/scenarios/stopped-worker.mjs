/** SIGSTOP of one worker: it stalls alone, is found by either clock of the contract (7.2, 8.3), or goes on after SIGCONT. */
import { Ledger } from '../stage/ledger.mjs'
import { signal } from '../stage/processes.mjs'
import { pool } from '../stage/stage.mjs'
import { sleep } from '../stage/waiting.mjs'

const CONFIG = {
  pools: [
    pool('hanging', { hang_timeout_sec: 2 }),
    pool('patient'),
    pool('full', { limits: { backpressure_timeout_sec: 2, max_output_queue: 65_536 } }),
    pool('bystander', { instances: 2 }),
  ],
}
const PADDING = 'y'.repeat(8_000)

export const stoppedWorker = {
  name: 'stopped-worker',
  title: 'SIGSTOP of a worker: hang clock, queue clock, SIGCONT; bystanders on other workers',
  async run(stage) {
    const bus = await stage.start(CONFIG)
    const before = await bus.descriptorsAtRest()
    const bystanders = new Ledger()
    const others = await stage.steady(bus, 6, 'bystander', {}, { ledger: bystanders })
    await stallUntilEnded(stage, bus, 'hanging', { window: 4 })
    await stallUntilEnded(stage, bus, 'full', { window: 400, params: { padding: PADDING } })
    await stopAndContinue(stage, bus)
    await stage.settle(others)
    stage.fact(`bystanders: ${bystanders.answered} answered, ${bystanders.errorCount} errors`)
    stage.check(bystanders.errorCount === 0, 'a bystander got an error')
    stage.check(bystanders.answered > 1_000, 'the bystanders were held up')
    stage.ledger.add(bystanders)
    await stage.checkDescriptors(bus, before)
    await stage.finish(bus)
  },
}

async function stallUntilEnded(stage, bus, poolId, { window, params }) {
  const ledger = new Ledger()
  const { pid, generation } = await bus.worker(poolId)
  const [player] = await stage.steady(bus, 1, poolId, params, { ledger, window })
  await sleep(300)
  signal(pid, 'SIGSTOP')
  const startMs = performance.now()
  while (ledger.errorCount === 0 && performance.now() - startMs < 15_000) await sleep(20)
  const tookMs = performance.now() - startMs
  await sleep(1_000)
  await stage.settle([player])
  const after = await bus.worker(poolId)
  stage.fact(`${poolId}: ${ledger.errors.worker_stalled ?? 0} worker_stalled after ${(tookMs / 1000).toFixed(1)} s`)
  stage.check(ledger.errors.worker_stalled > 0, `${poolId}: no worker_stalled, but ${JSON.stringify(ledger.errors)}`)
  stage.check(tookMs > 1_500 && tookMs < 6_000, `${poolId}: stalled after ${Math.round(tookMs)} ms instead of 2 s`)
  stage.check(after?.generation > generation, `${poolId}: the worker was not restarted`)
  stage.ledger.add(ledger)
}

async function stopAndContinue(stage, bus) {
  const ledger = new Ledger()
  const { pid } = await bus.worker('patient')
  const [player] = await stage.steady(bus, 1, 'patient', {}, { ledger })
  signal(pid, 'SIGSTOP')
  await sleep(2_500)
  signal(pid, 'SIGCONT')
  await sleep(300)
  await stage.settle([player])
  const after = await bus.worker('patient')
  stage.check(ledger.errorCount === 0, `SIGCONT: ${JSON.stringify(ledger.errors)}`)
  stage.check(after?.pid === pid, 'SIGCONT: the worker was replaced')
  stage.fact(`patient: ${ledger.answered} answered through SIGSTOP and SIGCONT, 0 errors`)
  stage.ledger.add(ledger)
}
