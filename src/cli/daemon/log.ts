/**
 * The log of the bus: stderr or a file, lines for people on a terminal, JSON otherwise, unless told (contract 8.5).
 *
 * Text from peers is escaped wherever it is shown. The same warning about the same worker is written a few times, then
 * counted: a peer cannot fill the disk.
 */
import { destination, type Logger, pino } from 'pino'
import { wantsColor } from '../../host/terminal.ts'
import type { LogLevel } from '../../kernel/events.ts'
import { LogFile } from './log-file.ts'
import { lineDrawer } from './log-line.ts'
import { RecentLines } from './recent-lines.ts'

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const
export type LogThreshold = (typeof LOG_LEVELS)[number]
export const LOG_FORMATS = ['text', 'json'] as const
export type LogFormat = (typeof LOG_FORMATS)[number]

const WINDOW_MS = 10_000
const PER_WINDOW = 20
/** What a peer may bring about again and again; so may a node, whatever it is. */
const REPEATED: ReadonlySet<LogLevel> = new Set(['warn', 'error'])

export interface LogOptions {
  readonly level: LogThreshold
  /** Left out: text on a terminal, JSON elsewhere. */
  readonly format?: LogFormat | undefined
  /** Left out: stderr. */
  readonly file?: string | undefined
  /** Takes lines of JSON instead. */
  readonly to?: Write
}

type Write = (line: string) => void

interface Tally {
  sinceMs: number
  count: number
}

export class Log {
  /** What was logged last, as JSON. */
  readonly recent = new RecentLines()
  /** Where it is written, if not to stderr. */
  readonly file: string | undefined
  readonly #logger: Logger
  readonly #tallies = new Map<string, Tally>()

  constructor({ level, format, file, to }: LogOptions) {
    this.file = file
    const write = to ?? writerFor(format ?? (file === undefined && process.stderr.isTTY ? 'text' : 'json'), file)
    const options = {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label: string) => ({ level: label }) },
    }
    this.#logger = pino(options, {
      write: (line) => {
        this.recent.push(line)
        write(line)
      },
    })
  }

  isWritten(level: LogLevel): boolean {
    return this.#logger.isLevelEnabled(level)
  }

  write(level: LogLevel, text: string, about: Readonly<Record<string, unknown>> = {}): void {
    if (!this.#logger.isLevelEnabled(level)) return
    const isStderr = about['stream'] === 'stderr'
    const isOfPeers = REPEATED.has(level) || about['node'] !== undefined
    if (isOfPeers && !isStderr && !this.#mayRepeat(level, text, about)) return
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

function writerFor(format: LogFormat, file: string | undefined): Write {
  const write = file === undefined ? toStderr(format) : toFile(file)
  if (format === 'json') return write
  const draw = lineDrawer({ color: file === undefined && wantsColor(process.stderr) })
  return (line) => write(draw(line))
}

/** JSON is written at once, whole, whatever reads it; for people the stream is good enough. */
function toStderr(format: LogFormat): Write {
  if (format === 'text') return (line) => void process.stderr.write(line)
  const stderr = destination({ dest: 2, sync: true })
  return (line) => void stderr.write(line)
}

function toFile(path: string): Write {
  const file = new LogFile(path)
  return (line) => file.write(line)
}
