/**
 * Clients in a process of their own, to be killed. Tells its books twice a second; what was asked since is nobody's debt,
 * for its client is gone. Argument: JSON with addresses, pools, mark, clients, seed.
 */
import { Ledger } from '../stage/ledger.mjs'
import { mixedPlan } from '../stage/plans.mjs'
import { Player } from '../stage/player.mjs'
import { Random } from '../stage/random.mjs'

const { addresses, pools, mark, clients, seed } = JSON.parse(process.argv[2])
const random = new Random(seed)
const ledger = new Ledger()

for (let index = 0; index < clients; index++) {
  const plan = mixedPlan(random, pools)
  const player = await Player.connect(random.pick(addresses), { mark: `${mark}.${index}`, ledger, plan })
  player.play()
}
setInterval(() => process.send({ doubled: ledger.doubled, misdelivered: ledger.misdelivered }), 100)
process.on('disconnect', () => process.exit())
