/** The stderr of a bus as it arrives, line by line; JSON lines are parsed, other lines keep their text only. */
import type { Readable } from 'node:stream'
import { eventually, PATIENCE_MS } from './waiting.ts'

export interface LogLine {
  readonly text: string
  /** The parsed line; empty when it is not JSON. */
  readonly fields: Record<string, unknown>
}

const WARN = 40
const LEVELS: Record<string, number> = { trace: 10, debug: 20, info: 30, warn: 40, error: 50, fatal: 60 }

export class BusLog {
  readonly lines: LogLine[] = []
  #held = ''

  constructor(stderr: Readable) {
    stderr.setEncoding('utf8')
    stderr.on('data', (chunk: string) => this.#take(chunk))
    stderr.on('error', () => {})
  }

  get text(): string {
    return this.lines.map((line) => line.text).join('\n') + this.#held
  }

  find(test: (line: LogLine) => boolean): LogLine | undefined {
    return this.lines.find(test)
  }

  /** The first line, now or later, that matches. */
  async line(what: RegExp | ((line: LogLine) => boolean), timeoutMs = PATIENCE_MS): Promise<LogLine> {
    const test = what instanceof RegExp ? (line: LogLine) => what.test(line.text) : what
    return eventually(`a log line ${what}`, () => this.find(test), timeoutMs)
  }

  /** Lines of level warn or above. */
  warnings(): LogLine[] {
    return this.lines.filter((line) => levelOf(line) >= WARN)
  }

  #take(chunk: string): void {
    const parts = (this.#held + chunk).split('\n')
    this.#held = parts.pop() ?? ''
    for (const text of parts) this.lines.push({ text, fields: parse(text) })
  }
}

/** The level as a number, whether the log writes it as a number, as a word, or inside a human line. */
export function levelOf(line: LogLine): number {
  const level = line.fields['level']
  if (typeof level === 'number') return level
  if (typeof level === 'string') return LEVELS[level.toLowerCase()] ?? 0
  const word = /\b(trace|debug|info|warn|error|fatal)/i.exec(line.text)?.[1]
  return word === undefined ? 0 : (LEVELS[word.toLowerCase()] ?? 0)
}

/** The addresses of a `ready` line, in JSON or in human form. */
export function readyAddresses(line: LogLine): string[] | undefined {
  const { msg, addresses } = line.fields
  if (msg === 'ready' && Array.isArray(addresses)) return addresses.map(String)
  if (Object.keys(line.fields).length > 0 || !/\bready\b/.test(line.text)) return undefined
  return line.text.match(/\b(?:unix:\S+|tcp:\S+|tls:\S+|https?:\S+|stdio)\b/g) ?? []
}

function parse(text: string): Record<string, unknown> {
  try {
    const value = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : {}
  } catch {
    return {}
  }
}
