/** What a run came to, a row for each target: for the terminal, and as a section of docs/reliability.md. */
import { settingOf, tableOf, whole, writeSection } from '../support/reliability-page.mjs'

const COLUMNS = [
  ['target', ({ name }) => name],
  ['inputs', ({ inputs }) => whole(inputs)],
  ['seconds', ({ seconds }) => seconds.toFixed(1)],
  ['findings', ({ findings }) => whole(findings)],
  ['met', ({ kinds, note }) => [shares(kinds), ...(note === undefined ? [] : [note])].join('; ')],
]

export function formatTable(tallies) {
  const sum = (key) => tallies.reduce((total, tally) => total + tally[key], 0)
  const all = { name: 'all', inputs: sum('inputs'), seconds: sum('seconds'), findings: sum('findings'), kinds: {} }
  return tableOf(COLUMNS, [...tallies, all])
}

export function writeFuzzing(tallies, seed, durationMs) {
  writeSection(
    'fuzz',
    `## Fuzzing

${settingOf(`npm run fuzz -- --seed ${seed}`, durationMs)} Inputs are made by grammars and broken, the corpus is replayed first. Framing and
envelope are compared with an independent reference, the configuration must accept or explain, and at the doors the built
program must do with every line what the reference says, while a neighbour is served. At the web door heads, bodies and frames are
sound, unsound by one of their parts, or wounded; each answer is the one that its first unsound part deserves, in order and at its own connection.

${formatTable(tallies)}`,
  )
}

function shares(kinds) {
  const sorted = Object.entries(kinds).sort(([, a], [, b]) => b - a)
  const total = sorted.reduce((sum, [, count]) => sum + count, 0)
  return sorted.map(([kind, count]) => `${kind} ${percent(count / total)}`).join(', ')
}

function percent(share) {
  return share < 0.01 ? '<1%' : `${Math.round(share * 100)}%`
}
