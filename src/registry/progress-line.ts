/**
 * Shows the progress of installations on one line of stderr: a bar on a terminal, a sentence per step elsewhere.
 *
 * It never writes to stdout, which may be an agent's, and leaves no trace on a terminal when it is done.
 */
import { canMoveCursor } from '../host/terminal.ts'
import type { Progress } from './install/job.ts'
import { printable } from './printable.ts'

const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']
const BAR_CELLS = 24
const FRAME_MS = 80
const MIB = 1024 * 1024

const PHASES: Readonly<Record<Progress['phase'], string>> = {
  waiting: 'waiting for another process that installs',
  downloading: 'downloading',
  unpacking: 'unpacking',
  installing: 'installing',
  installed: 'installed',
}

export interface ProgressStream {
  readonly isTTY?: boolean
  readonly columns?: number
  write(text: string): unknown
}

export class ProgressLine {
  readonly #stream: ProgressStream
  #timer: NodeJS.Timeout | undefined
  #latest: Progress | undefined
  #frame = 0

  constructor(stream: ProgressStream) {
    this.#stream = stream
  }

  readonly update = (progress: Progress): void => {
    const isNew = this.#latest?.phase !== progress.phase
    this.#latest = progress
    if (!canMoveCursor(this.#stream)) {
      if (isNew) this.#stream.write(`${describe(progress)}\n`)
    } else if (progress.phase === 'installed') this.finish()
    else this.#animate()
  }

  /** Clears the line; whatever is written next starts at its beginning. */
  finish(): void {
    if (this.#timer === undefined) return
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#stream.write('\r\x1b[K')
  }

  #animate(): void {
    if (this.#timer !== undefined) return
    this.#timer = setInterval(() => this.#draw(), FRAME_MS)
    this.#timer.unref()
    this.#draw()
  }

  #draw(): void {
    if (this.#latest === undefined) return
    this.#frame = (this.#frame + 1) % FRAMES.length
    const text = `${FRAMES[this.#frame]} ${describe(this.#latest)}${drawBar(this.#latest)}`
    this.#stream.write(`\r\x1b[K${text.slice(0, (this.#stream.columns || 80) - 1)}`)
  }
}

function describe({ phase, id, version }: Progress): string {
  return `${PHASES[phase]} ${printable(id)} ${printable(version)}`
}

/** A bar when the size is known, a count when it is not, nothing when there is nothing to count. */
export function drawBar({ doneBytes, totalBytes }: Progress): string {
  if (doneBytes === undefined) return ''
  const done = (doneBytes / MIB).toFixed(1)
  if (totalBytes === undefined) return `  ${done} MiB`
  const share = Math.min(1, doneBytes / totalBytes)
  const full = Math.round(share * BAR_CELLS)
  const bar = '█'.repeat(full) + '░'.repeat(BAR_CELLS - full)
  return `  ${bar} ${Math.floor(share * 100)} %  ${done} of ${(totalBytes / MIB).toFixed(1)} MiB`
}
