/**
 * Turns figures into a table for people and a file for programs. Invents nothing: a figure that was not measured is an empty cell.
 */
import { cpus, loadavg, totalmem } from 'node:os'

const fixed = (digits) => (value) => value.toFixed(digits)
const whole = (value) => Math.round(value).toLocaleString('en-US')
const percent = (value) => `${Math.round(value * 100)} %`

const columns = [
  ['row', (row) => row.name],
  ['requests/s', (row) => cell(row.requestsPerSecond, whole)],
  ['p50 µs', (row) => cell(row.p50Us, fixed(0))],
  ['p99 µs', (row) => cell(row.p99Us, fixed(0))],
  ['CPU µs/line', (row) => cell(row.cpuUsPerLine, fixed(3))],
  ['limit', (row) => cell(row.limit?.cpuUsPerLine, fixed(3))],
  ['CPU ratio', (row) => cell(row.cpuRatio, fixed(2))],
  ['p50 ratio', (row) => cell(row.p50Ratio, fixed(2))],
  ['rate ratio', (row) => cell(row.rateRatio, fixed(2))],
  ['bus busy', (row) => cell(row.busyBus, percent)],
  ['worker busy', (row) => cell(row.busyWorker, percent)],
  ['load busy', (row) => cell(row.busyLoad, percent)],
  ['peak RSS MiB', (row) => cell(row.peakRssMib ?? row.rssMib, fixed(0))],
  ['target', (row) => row.judgements?.map(judgementText).join(', ') ?? ''],
]

const cell = (value, spell) => (value === undefined || Number.isNaN(value) ? '' : spell(value))

function judgementText({ figure, value, max, min, aim, reached }) {
  const verdict = reached ? 'reached' : 'MISSED'
  if (min !== undefined) return `${figure} ${value.toFixed(2)} ≥ ${min}: ${verdict}`
  const aimText = aim === undefined ? '' : ` (aim ${aim}${value <= aim ? ', reached' : ''})`
  return `${figure} ${value.toFixed(2)} ≤ ${max}: ${verdict}${aimText}`
}

export function judge(figures, targets) {
  return targets?.map((target) => ({
    ...target,
    value: figures[target.figure],
    reached: figures[target.figure] <= (target.max ?? Infinity) && figures[target.figure] >= (target.min ?? -Infinity),
  }))
}

export function machine() {
  const [cpu] = cpus()
  const [loadAverage] = loadavg()
  return {
    node: process.version,
    cpu: cpu.model,
    cores: cpus().length,
    memoryMib: Math.round(totalmem() / 2 ** 20),
    loadAverage,
  }
}

/** A Markdown table whose columns line up in a terminal as well. */
export function tableOf(rows) {
  const cells = [
    columns.map(([title]) => title),
    ...rows.map((row) => columns.map(([, spell]) => (row.error ? failed(row, spell) : spell(row)))),
  ]
  const widths = columns.map((_, index) => Math.max(...cells.map((line) => line[index].length)))
  const spelled = cells.map((line) => `| ${line.map((text, index) => text.padEnd(widths[index])).join(' | ')} |`)
  spelled.splice(1, 0, `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`)
  return spelled.join('\n')
}

const failed = (row, spell) =>
  spell === columns[0][1] ? row.name : spell === columns.at(-1)[1] ? `not measured: ${row.error}` : ''

const LEGEND = `A request and its answer are two lines. CPU is the time of the bus process alone. Ratios are medians over rounds that take turns with the
limit: the blind pipe for \`1c-1w\` and \`bar\` rows (a server that only echoes for \`bar-20c-4w-1\`), the same bus with little of it for \`against\` rows. A row is named door, length of a line, clients,
workers, requests in flight per client. Busy is the share of one core; of several workers the busiest counts.`

export function markdownOf({ machine: { node, cpu, cores, loadAverage }, mode, placement, rows }) {
  return `# Benchmarks (${mode})\n\n${node}, ${cores} cores, ${cpu}; placement: ${placement}; load average before: ${loadAverage.toFixed(1)}\n\n${tableOf(rows)}\n\n${LEGEND}\n`
}
