/** One core's share of a long simulation; prints its tally as JSON. */
import { pathToFileURL } from 'node:url'

const [folder, seed, events, minutes] = process.argv.slice(2)
const { formatTally, reportFailure, runSeeds } = await import(pathToFileURL(`${folder}/test/simulation/main.js`).href)

const order = { seed: Number(seed), seeds: 0, events: Number(events), minutes: Number(minutes), steps: undefined }
const tally = await runSeeds(order, (so) => so.seeds % 1000 === 0 && process.stderr.write(`${formatTally(so)}\n`))
const { failed } = tally
const failure = failed === undefined ? undefined : await reportFailure(failed.plan, failed.outcome)
process.stdout.write(JSON.stringify({ ...tally, failed: undefined, failure, reasons: [...tally.reasons] }))
