/**
 * A line of the log as people read it: local time with its zone, level, whose it is, what is said, the rest as `key=value`.
 *
 * It takes what the log writes as JSON; anything else is shown as it is, escaped.
 */
import { createColors } from 'picocolors'
import { showClock } from '../../host/terminal.ts'
import { printable } from '../../wire/printable.ts'
import { readLogLine } from './log-fields.ts'

/** Draws lines with their newline; `color` decides once for all of them. */
export function lineDrawer({ color }: { readonly color: boolean }): (line: string) => string {
  const colors = createColors(color)
  const paint: Readonly<Record<string, (text: string) => string>> = {
    debug: colors.dim,
    info: colors.cyan,
    warn: colors.yellow,
    error: colors.red,
  }
  return (line) => {
    const fields = readLogLine(line)
    if (fields === undefined) return `${printable(line.trimEnd())}\n`
    const { level, time, msg, pool, worker, stream, ...rest } = fields
    const label = String(level).padEnd(5)
    const who = pool === undefined ? '' : colors.bold(` ${show(pool)}${worker === undefined ? '' : `/${worker}`}`)
    const says = stream === 'stderr' ? colors.dim(' |') : ''
    const details = Object.entries(rest).map(([key, value]) => ` ${colors.dim(`${key}=`)}${show(value)}`)
    const clock = colors.dim(showClock(Date.parse(String(time))))
    return `${clock} ${paint[String(level)]?.(label) ?? label}${who}${says} ${printable(String(msg))}${details.join('')}\n`
  }
}

function show(value: unknown): string {
  return printable(typeof value === 'string' ? value : JSON.stringify(value))
}
