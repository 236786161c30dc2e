/**
 * The log of the bus: stderr only, lines for people on a terminal, JSON otherwise (contract 8.5).
 *
 * Text from peers is escaped wherever it is shown. The same warning about the same worker is written a few times, then
 * counted: a peer cannot fill the disk.
 */
import picocolors from 'picocolors'
import { destination, type Logger, pino } from 'pino'
import type { LogLevel } from '../../kernel/events.ts'
import { printable } from '../../wire/printable.ts'

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const
export type LogThreshold = (typeof LOG_LEVELS)[number]

const WINDOW_MS = 10_000
const PER_WINDOW = 20
/** What a peer may bring about again and again. */
const REPEATED: ReadonlySet<LogLevel> = new Set(['warn', 'error'])

export interface LogOptions {
  readonly level: LogThreshold
  readonly isTerminal: boolean
}

interface Tally {
  sinceMs: number
  count: number
}

export class Log {
  readonly #logger: Logger
  readonly #tallies = new Map<string, Tally>()

  constructor({ level, isTerminal }: LogOptions) {
    const base = {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label: string) => ({ level: label }) },
    }
    this.#logger = isTerminal
      ? pino(base, { write: (line) => void process.stderr.write(forPeople(line)) })
      : pino(base, destination({ dest: 2, sync: true }))
  }

  write(level: LogLevel, text: string, about: Readonly<Record<string, unknown>> = {}): void {
    if (!this.#logger.isLevelEnabled(level)) return
    const isStderr = about['stream'] === 'stderr'
    if (REPEATED.has(level) && !isStderr && !this.#mayRepeat(level, text, about)) return
    this.#logger[level](about, text)
  }

  #mayRepeat(level: LogLevel, text: string, about: Readonly<Record<string, unknown>>): boolean {
    const key = `${text} ${about['pool'] ?? ''}/${about['worker'] ?? ''}`
    const nowMs = performance.now()
    const tally = this.#tallies.get(key)
    if (tally === undefined || nowMs - tally.sinceMs > WINDOW_MS) {
      if (tally !== undefined && tally.count > PER_WINDOW) {
        this.#logger[level]({ ...about, times: tally.count - PER_WINDOW }, `${text} (repeated)`)
      }
      if (this.#tallies.size > 1_000) this.#tallies.clear()
      this.#tallies.set(key, { sinceMs: nowMs, count: 1 })
      return true
    }
    tally.count++
    return tally.count <= PER_WINDOW
  }
}

const PAINT = { debug: picocolors.dim, info: picocolors.cyan, warn: picocolors.yellow, error: picocolors.red } as const

function forPeople(line: string): string {
  const { level, time, msg, pool, worker, stream, ...rest } = JSON.parse(line) as Record<string, unknown>
  const clock = String(time).slice(11, 23)
  const paint = PAINT[level as keyof typeof PAINT] ?? ((text: string) => text)
  const who = pool === undefined ? '' : picocolors.bold(` ${pool}${worker === undefined ? '' : `/${worker}`}`)
  const says = stream === 'stderr' ? picocolors.dim(' |') : ''
  const details = Object.entries(rest).map(([key, value]) => ` ${picocolors.dim(`${key}=`)}${show(value)}`)
  return `${picocolors.dim(clock)} ${paint(String(level).padEnd(5))}${who}${says} ${printable(String(msg))}${details.join('')}\n`
}

function show(value: unknown): string {
  return printable(typeof value === 'string' ? value : JSON.stringify(value))
}
