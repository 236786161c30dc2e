/** Looks for a violation in a compiled kernel, seed by seed, and prints what it found as JSON; planted.mjs runs it. */
import { pathToFileURL } from 'node:url'

const [folder, seeds, events] = process.argv.slice(2)
const { simulate } = await import(pathToFileURL(`${folder}/test/simulation/simulate.js`).href)

async function hunt() {
  let seen = 0
  for (let seed = 1; seed <= Number(seeds); seed++) {
    const { violation, events: lived } = await simulate({ seed, events: Number(events) })
    seen += lived
    if (violation !== undefined) return { seed, events: seen, what: violation.message.split('\n')[0].slice(0, 200) }
  }
  return undefined
}

process.stdout.write(JSON.stringify((await hunt()) ?? {}))
