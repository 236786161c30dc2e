/**
 * Figures as a table for the terminal and for docs/reliability.md. Invents nothing: the page has what the run has counted.
 */
import { settingOf, tableOf, whole, writeSection } from '../support/reliability-page.mjs'
import { ATTACKS } from './attacks/table.mjs'

const errorsText = (errors) =>
  Object.entries(errors)
    .sort(([, one], [, other]) => other - one)
    .map(([reason, count]) => `${reason} ${whole(count)}`)
    .join(', ')

const COLUMNS = [
  ['scenario', (row) => row.name],
  ['requests', (row) => whole(row.requests)],
  ['answered', (row) => whole(row.answered)],
  ['errors by reason', (row) => errorsText(row.errors)],
  ['closed', (row) => whole(row.closed)],
  ['abandoned', (row) => whole(row.abandoned)],
  ['lost', (row) => whole(row.lost)],
  ['doubled', (row) => whole(row.doubled)],
  ['misdelivered', (row) => whole(row.misdelivered)],
  ['orphans', (row) => whole(row.orphans)],
  ['leaked fds', (row) => whole(row.leaked)],
  ['peak RSS MiB', (row) => whole(row.peakRssMib)],
  ['verdict', (row) => (row.violations.length === 0 ? 'held' : `VIOLATED: ${row.violations.join('; ')}`)],
]

const HOSTILE_COLUMNS = [
  ['attack', (row) => row.name],
  ['writes', (row) => whole(row.lines)],
  ['answered', (row) => whole(row.answered)],
  ['errors by reason', (row) => errorsText(row.errors)],
  ['peak RSS MiB', (row) => `${whole(row.peakRssMib)} of ${whole(row.boundMib)}`],
  ['peak queues MiB', (row) => `${row.queueMib.toFixed(1)} of ${whole(row.queueBoundMib)}`],
  ['p99 ms before', (row) => row.before99Ms.toFixed(2)],
  ['at the twin', (row) => row.twin99Ms.toFixed(2)],
  ['under attack', (row) => row.p99Ms.toFixed(2)],
  ['ratio', (row) => `${row.ratio.toFixed(2)} of ${row.worst}`],
]

export const chaosTable = (sheets) => tableOf(COLUMNS, sheets)
export const hostileTable = (attacks) => tableOf(HOSTILE_COLUMNS, attacks)

const setting = ({ seed, durationMs }) => settingOf(`npm run chaos -- --seed ${seed}`, durationMs)

function chaosSection(sheets, run) {
  const legend = sheets.map(({ name, title, facts }) => `- **${name}**: ${title}. ${facts.join('; ')}.`).join('\n')
  return `## Faults on the real program

${setting(run)} The daemon as it is shipped, on loopback, with real processes.

${chaosTable(sheets)}

Every request is in exactly one column: *answered* by a worker, an *error* of the bus by its reason, or *closed* where the
bus itself was killed and the closed socket is the answer, or *abandoned* by a client that left without waiting. Clients use the same ids at the same time and every payload carries its
client and number, so an answer at the wrong client or a second one is seen. Orphans are counted 3 s after the end of the
bus, descriptors when it is at rest again.

${legend}`
}

const slackOf = ({ worst, because }) => (worst === undefined ? '' : `. Up to ${worst}: ${because}`)

function hostileSection({ attacks }, run) {
  const legend = attacks.map(({ name }) => `- **${name}**: ${ATTACKS[name].title}${slackOf(ATTACKS[name])}`).join('\n')
  return `## Limits against hostile clients

${setting(run)} Each attack has a bus of its own with \`max_total_buffer\` 64 MiB. A well-behaved client of another worker asks
every 3 ms; p99 is how long its answers take right before the attack, at a twin of the bus that nobody attacks, and under
attack. The ratio is to the larger of the first two, since what a busy machine adds is not the bus's doing, and may be 3 at
the most, unless the row says otherwise and why; every attack has one attempt. A busy machine hides what an idle one would
show: only figures with a low p99 before are proof. The bound of memory is what the bus holds at rest, \`max_total_buffer\`,
and room for garbage and tables; that of the queues is \`max_total_buffer\`, and for attacks on agents, where
\`max_output_queue\` is 1 MiB, the two queues that a call passes and a line for each source. Attackers and the workers they reach run at the lowest priority, so that the figures show the bus and not how few cores are shared out.

${hostileTable(attacks)}

${legend}

Known to come near the bound, and to exceed it on a busy machine: floods of refused requests, and hundreds of connections that
all deliver large unfinished lines within the same second.`
}

/** Puts the sections of this run into the page. */
export function writePage(sheets, hostile, run) {
  writeSection('chaos', chaosSection(sheets, run))
  writeSection('hostile', hostileSection(hostile, run))
}
