/** Looks for a violation in a compiled kernel, seed by seed, and prints what it found as JSON; planted.mjs runs it. */
import { pathToFileURL } from 'node:url'

const [folder, seeds, events, world = 'kernel'] = process.argv.slice(2)
const load = (name) => import(pathToFileURL(`${folder}/test/simulation/${name}.js`).href)

/** How each kind of world is looked through. */
const HUNTS = {
  kernel: async () => hunt((await load('simulate')).simulate),
  cluster: async () => hunt((await load('cluster-world')).simulateCluster),
  kept: async () => huntKept((await load('kept-main')).runKeptSeeds),
}

async function hunt(simulate) {
  let seen = 0
  for (let seed = 1; seed <= Number(seeds); seed++) {
    const { violation, events: lived } = await simulate({ seed, events: Number(events) })
    seen += lived
    if (violation !== undefined) return { seed, events: seen, what: violation.message.split('\n')[0].slice(0, 200) }
  }
  return undefined
}

function huntKept(runKeptSeeds) {
  const { events: seen, failed } = runKeptSeeds(1, Number(seeds), Number(events))
  return failed && { seed: failed.seed, events: seen, what: failed.what.split('\n')[0].slice(0, 200) }
}

process.stdout.write(JSON.stringify((await HUNTS[world]()) ?? {}))
