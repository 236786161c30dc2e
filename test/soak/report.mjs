/** The figures of a soak as a table for the terminal and as its section of docs/reliability.md. */
import { settingOf, tableOf, whole, writeSection } from '../support/reliability-page.mjs'

const COLUMNS = [
  ['minute', (row) => whole(row.number)],
  ['requests', (row) => whole(row.requests)],
  ['answered', (row) => whole(row.answered)],
  ['errors', (row) => whole(row.errors)],
  ['abandoned', (row) => whole(row.abandoned)],
  ['clients', (row) => whole(row.counts[0])],
  ['reloads', (row) => whole(row.counts[1])],
  ['kills', (row) => whole(row.counts[2])],
  ['heap MiB', (row) => row.heapMib.toFixed(2)],
  ['buffers MiB', (row) => row.buffersMib.toFixed(2)],
  ['RSS MiB', (row) => whole(row.rssMib)],
]

export const soakTable = (rows) => tableOf(COLUMNS, rows)

/** The text of the section; it goes into the page where the run is `whole`. */
export function writePage({ rows, growth, bar, sheet }, { command, durationMs }, isWhole) {
  const { requests, lost, doubled, misdelivered, orphans, leaked } = sheet
  const errors = Object.entries(sheet.errors).map(([reason, count]) => `\`${reason}\` ${whole(count)}`)
  const text = `## Soak

${settingOf(command, durationMs)} The daemon as it is shipped, with
shared, leased and isolated workers, agents (one that calls another, one started for each call) and traces. Clients come and
go all the time, a third of them without waiting for their answers; the file changes and is reloaded (pools grow, change,
come and go), and workers are killed. After each minute all clients leave, the first file is loaded again, garbage is
collected, and what the heap still holds is read. In the first minute one agent is called so often that the memories with a
bound of their own are full. Requests add up; clients, reloads and kills are those of the minute.

${soakTable(rows)}

Heap at the end: ${growth.toFixed(3)} of that after the first minute, ${bar} at the most. Of ${whole(requests)} requests ${whole(lost)} lost, ${whole(doubled)} doubled,
${whole(misdelivered)} misdelivered; ${whole(orphans)} orphans, ${whole(leaked)} leaked descriptors. Errors by reason: ${errors.join(', ')}.`
  if (isWhole) writeSection('soak', text)
  return text
}
