/**
 * docs/reliability.md is written by the runs themselves: each has a section between two marks and replaces only that.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import { fileURLToPath } from 'node:url'

const PAGE = fileURLToPath(new URL('../../docs/reliability.md', import.meta.url))

export const whole = (value) => Math.round(value).toLocaleString('en-US')

/** With what the figures of a section were made. */
export function settingOf(command, durationMs) {
  const machine = `Node ${process.version}, ${cpus().length} cores (${cpus()[0].model}), load average ${loadavg()[0].toFixed(1)}`
  return `\`${command}\`, ${whole(durationMs / 1000)} s, ${machine}.`
}

/** A Markdown table whose columns line up in a terminal as well; a column is its title and how a row spells it. */
export function tableOf(columns, rows) {
  const cells = [columns.map(([title]) => title), ...rows.map((row) => columns.map(([, spell]) => spell(row)))]
  const widths = columns.map((_, index) => Math.max(...cells.map((line) => line[index].length)))
  const spelled = cells.map((line) => `| ${line.map((text, index) => text.padEnd(widths[index])).join(' | ')} |`)
  spelled.splice(1, 0, `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`)
  return spelled.join('\n')
}

/** Writes the section of one kind of run, whatever the other sections say. */
export function writeSection(name, text) {
  const [begin, end] = [`<!-- ${name}:begin -->`, `<!-- ${name}:end -->`]
  const section = `${begin}\n${text.trim()}\n${end}`
  const page = readFileSync(PAGE, 'utf8')
  const from = page.indexOf(begin)
  const next =
    from === -1
      ? `${page.trimEnd()}\n\n${section}\n`
      : page.slice(0, from) + section + page.slice(page.indexOf(end) + end.length)
  writeFileSync(PAGE, next)
}
