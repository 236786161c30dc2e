/**
 * The audit log: who came, what they did, what was refused, as lines that are appended to a file (contract 9.23).
 *
 * Telling never waits and never throws: lines are gathered for a moment and written together, one write at a time, in the
 * order in which they came. While it cannot be written a little waits; beyond that lines are lost, counted and logged, and
 * a line `gap` in their place says how many once it can. Nothing is synced: what the system has been given is its own.
 * Invariant: between the first line that is lost and the gap that tells of it, every line is lost.
 */
import { close, type Stats, write } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { type AppendTarget, openToAppend } from '../host/own-file.ts'
import { type AuditEvent, auditLine } from './audit-line.ts'

export interface AuditOptions {
  readonly file: string
  /** Without a log that can be written nothing may be done. */
  readonly isRequired: boolean
  readonly log: (level: 'info' | 'error', text: string, about: Readonly<Record<string, unknown>>) => void
  readonly nowMs?: () => number
  readonly times?: Partial<AuditTimes>
}

export interface AuditTimes {
  /** How long lines are gathered. */
  readonly batchMs: number
  /** How long after a failure it is tried again. */
  readonly retryMs: number
  /** The same for a pipe that is full. */
  readonly fullPipeMs: number
  /** How long the end waits for what is being written. */
  readonly closeMs: number
}

export interface AuditStatus {
  readonly state: 'ok' | 'failed'
  /** Lines that nobody will ever read. */
  readonly lost: number
  readonly waitingBytes: number
  readonly reason?: string
}

const TIMES: AuditTimes = { batchMs: 5, retryMs: 500, fullPipeMs: 10, closeMs: 1_000 }
/** So much waits while it cannot be written. */
export const MAX_WAITING_BYTES = 1024 * 1024
/** So much may gather while a write is under way: no failure, only a disk that takes a breath. */
const MAX_BEHIND_BYTES = 16 * 1024 * 1024
/** What is written at once. */
const MAX_WRITE_BYTES = 256 * 1024
const MAX_WRITE_LINES = 1024
/** A pipe that was full so many times in a row is one that nobody reads. */
const MAX_FULL = 50
const NEWLINE = 0x0a
/** The descriptor stays good: there may be room again. */
const PASSING: ReadonlySet<string> = new Set(['EAGAIN', 'ENOSPC', 'EDQUOT', 'EFBIG', 'EINTR'])

const writeSome = promisify(write)

/** Bytes that are being written, and how far. */
interface Portion {
  readonly bytes: Buffer
  readonly lines: number
  at: number
}

export class AuditLog {
  readonly #log: AuditOptions['log']
  readonly #nowMs: () => number
  readonly #times: AuditTimes
  #file: string
  #isRequired: boolean
  #target: AppendTarget | undefined
  /** What was written to last, open or not. */
  #last: Stats | undefined
  #lines: string[] = []
  #bytes = 0
  #portion: Portion | undefined
  #writing: Promise<void> | undefined
  #mustReopen = false
  #problem: string | undefined
  /** How often in a row the pipe was full. */
  #full = 0
  /** Since the last gap that was told. */
  #lostSince = 0
  #lost = 0
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor({ file, isRequired, log, nowMs = Date.now, times }: AuditOptions) {
    this.#file = file
    this.#isRequired = isRequired
    this.#log = log
    this.#nowMs = nowMs
    this.#times = { ...TIMES, ...times }
    this.#open()
  }

  /** False: what is done now could not be told, and must not be done. */
  get isAvailable(): boolean {
    if (!this.#isRequired) return true
    return this.#problem === undefined && this.#lostSince === 0 && this.#waitingBytes <= this.#mostBytes / 2
  }

  get status(): AuditStatus {
    const reason = this.#problem
    return {
      state: reason === undefined ? 'ok' : 'failed',
      lost: this.#lost,
      waitingBytes: this.#waitingBytes,
      ...(reason === undefined ? {} : { reason }),
    }
  }

  write(event: AuditEvent): void {
    if (this.#isClosed) return
    const line = auditLine(event, this.#nowMs())
    const bytes = Buffer.byteLength(line)
    if (this.#lostSince > 0 || this.#waitingBytes + bytes > this.#mostBytes) return this.#lose(1)
    this.#add(line, bytes)
    this.#schedule()
  }

  /** Whoever rotates it has put it aside; or a reload names another. One that cannot be opened leaves the old in use. */
  reopen({ file, isRequired }: { readonly file: string; readonly isRequired: boolean } = this.#settings): void {
    this.#file = file
    this.#isRequired = isRequired
    this.#mustReopen = true
    if (this.#writing === undefined) this.#flush()
  }

  /** Writes what waits, if that takes no longer than a moment. */
  async close(): Promise<void> {
    this.#isClosed = true
    let isOver = false
    const end = setTimeout(() => {
      isOver = true
    }, this.#times.closeMs)
    while (!isOver && (this.#writing !== undefined || this.#waitingBytes > 0)) {
      this.#flush()
      await Promise.race([this.#writing, delay(this.#times.closeMs)])
      if (this.#waitingBytes > 0) await delay(this.#times.fullPipeMs)
    }
    clearTimeout(end)
    clearTimeout(this.#timer)
    if (this.#writing === undefined) this.#release()
    const lines = this.#lines.length + (this.#portion?.lines ?? 0)
    if (lines > 0) this.#lose(lines)
  }

  get #settings(): { readonly file: string; readonly isRequired: boolean } {
    return { file: this.#file, isRequired: this.#isRequired }
  }

  get #waitingBytes(): number {
    return this.#bytes + (this.#portion === undefined ? 0 : this.#portion.bytes.length - this.#portion.at)
  }

  get #isFailing(): boolean {
    return this.#problem !== undefined || this.#full > 0
  }

  get #mostBytes(): number {
    return this.#isFailing ? MAX_WAITING_BYTES : MAX_BEHIND_BYTES
  }

  #add(line: string, bytes: number): void {
    this.#lines.push(line)
    this.#bytes += bytes
  }

  #lose(lines: number): void {
    if (this.#lostSince === 0) this.#log('error', 'lines of the audit log are lost', { file: this.#file })
    this.#lostSince += lines
    this.#lost += lines
  }

  #schedule(): void {
    if (this.#writing !== undefined || this.#isFailing) return
    if (this.#bytes >= MAX_WRITE_BYTES) return this.#flush()
    this.#timer ??= setTimeout(() => this.#flush(), this.#times.batchMs)
  }

  /** Begins to write what waits, unless it is being written. */
  #flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#writing !== undefined) return
    this.#writing = this.#writeAll().finally(() => {
      this.#writing = undefined
      if (this.#mustReopen) this.#flush()
      else if (this.#lines.length > 0 && !this.#isClosed) this.#schedule()
    })
  }

  /** Never rejects. */
  async #writeAll(): Promise<void> {
    if (this.#mustReopen || this.#target === undefined) this.#open()
    while (this.#target !== undefined && (this.#portion ??= this.#nextPortion()) !== undefined) {
      try {
        await this.#writePortion(this.#target.descriptor, this.#portion)
      } catch (error) {
        return this.#failed(error as NodeJS.ErrnoException)
      }
      this.#portion = undefined
      this.#wrote()
      if (this.#mustReopen) return
    }
  }

  async #writePortion(descriptor: number, portion: Portion): Promise<void> {
    while (portion.at < portion.bytes.length) {
      const { bytesWritten } = await writeSome(descriptor, portion.bytes, portion.at)
      portion.at += bytesWritten
      this.#full = 0
    }
  }

  #nextPortion(): Portion | undefined {
    if (this.#lines.length === 0) return undefined
    const lines = this.#lines.splice(0, MAX_WRITE_LINES)
    const bytes = Buffer.from(lines.join(''))
    this.#bytes -= bytes.length
    return { bytes, lines: lines.length, at: 0 }
  }

  #wrote(): void {
    this.#recovered()
    if (this.#lostSince === 0) return
    const reason = `${this.#lostSince} lines`
    this.#lostSince = 0
    const gap = auditLine({ event: 'gap', outcome: 'lost', reason }, this.#nowMs())
    this.#add(gap, Buffer.byteLength(gap))
  }

  #failed(error: NodeJS.ErrnoException): void {
    if (!PASSING.has(error.code ?? '')) this.#release()
    if (error.code !== 'EAGAIN') return this.#fail(error.message, this.#times.retryMs)
    this.#full++
    this.#fail(this.#full < MAX_FULL ? this.#problem : 'nobody reads it', this.#times.fullPipeMs)
  }

  #fail(problem: string | undefined, retryMs: number): void {
    if (this.#problem === undefined && problem !== undefined)
      this.#log('error', 'the audit log cannot be written', { file: this.#file, why: problem })
    this.#problem = problem
    this.#loseWhatMayNotWait()
    this.#timer ??= setTimeout(() => this.#flush(), retryMs).unref()
  }

  #loseWhatMayNotWait(): void {
    let lines = 0
    for (; this.#waitingBytes > MAX_WAITING_BYTES && this.#lines.length > 0; lines++)
      this.#bytes -= Buffer.byteLength(this.#lines.pop()!)
    if (lines > 0) this.#lose(lines)
  }

  #open(): void {
    this.#mustReopen = false
    let target: AppendTarget
    try {
      target = openToAppend(this.#file)
    } catch (error) {
      const why = (error as Error).message
      if (this.#target === undefined) return this.#fail(why, this.#times.retryMs)
      return this.#log('error', 'the audit log cannot be opened again; the old file is used', { file: this.#file, why })
    }
    this.#release()
    this.#target = target
    this.#beginLineAgain(target.stats)
    this.#last = target.stats
    if (this.#waitingBytes === 0) this.#recovered()
  }

  /** Half a line is finished where its first half is, and nowhere else. */
  #beginLineAgain(stats: Stats): void {
    const portion = this.#portion
    const isSame = stats.isFile() && this.#last?.dev === stats.dev && this.#last.ino === stats.ino
    if (portion === undefined || portion.at === 0 || isSame) return
    portion.at = portion.bytes.lastIndexOf(NEWLINE, portion.at - 1) + 1
  }

  #recovered(): void {
    if (this.#problem !== undefined) this.#log('info', 'the audit log is written again', { file: this.#file })
    this.#problem = undefined
  }

  #release(): void {
    if (this.#target !== undefined && !this.#target.isGiven) close(this.#target.descriptor, () => {})
    this.#target = undefined
  }
}
