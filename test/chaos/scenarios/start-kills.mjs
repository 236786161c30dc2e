/** SIGKILL of the bus at random moments of its start, with workers that ignore the end of their input and SIGTERM. */
import { fileURLToPath } from 'node:url'
import { processesWorkingIn } from '../stage/processes.mjs'
import { eventually, sleep } from '../stage/waiting.mjs'

const STUBBORN = fileURLToPath(new URL('../../fixtures/process/stubborn.sh', import.meta.url))
const INSTANCES = 12
const CONFIG = { pools: [{ id: 'stubborn', command: '/bin/sh', args: [STUBBORN], instances: INSTANCES }] }
/** About as long as the workers take to be started, from the first of them on. */
const START_MS = 40

export const startKills = {
  name: 'start-kills',
  title: 'SIGKILL of the bus while it starts its workers',
  async run(stage) {
    const rounds = stage.isQuick ? 15 : 60
    let inTheMiddle = 0
    for (let round = 0; round < rounds; round++) {
      const bus = stage.launch(CONFIG)
      const workers = () => processesWorkingIn(bus.folder).filter(({ pid }) => pid !== bus.pid)
      stage.check(await eventually(() => workers().length > 0, 20_000, 1), 'no worker was started')
      await sleep(stage.random.between(0, START_MS))
      // Each of them has a child of its own.
      if (workers().length < 2 * INSTANCES) inTheMiddle++
      stage.notePeak(bus)
      stage.orphans += (await bus.end('SIGKILL')).orphans
    }
    stage.fact(`${rounds} kills, ${inTheMiddle} of them with workers still to be started`)
    stage.check(inTheMiddle > 0, 'every kill came too late')
  },
}
