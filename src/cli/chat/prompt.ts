/**
 * Where questions come from: a prompt on the terminal, or the lines of a pipe.
 *
 * The terminal is held only while a question is being typed.
 */
import { createInterface, type Interface } from 'node:readline/promises'
import type { ReadStream, WriteStream } from 'node:tty'
import type { HistoryFile } from './history-file.ts'
import { asOneLine, PASTE_OFF, PASTE_ON, PasteInput, withLineBreaks } from './paste.ts'

export interface PromptOptions {
  readonly input: ReadStream
  readonly output: WriteStream
  readonly history: HistoryFile
  /** What the terminal can be asked for beside printing. */
  readonly canDraw: boolean
  complete(line: string): string[]
  /** What came together with the line and is for the next prompt. */
  keep(typed: string): void
}

/** The lines of a pipe that are not empty. */
export async function* readLines(input: NodeJS.ReadableStream): AsyncGenerator<string> {
  for await (const line of createInterface({ input })) if (line.trim() !== '') yield line
}

/** A question; undefined: Ctrl-C or Ctrl-D at the empty prompt. `typed` is what was typed before it was there. */
export async function readQuestion(prompt: string, typed: string, options: PromptOptions): Promise<string | undefined> {
  const { output, history, canDraw, complete } = options
  const keys = canDraw ? new PasteInput(options.input) : undefined
  const lines = createInterface({
    input: keys ?? options.input,
    output,
    history: history.newestFirst().map(asOneLine),
    historySize: 1_000,
    removeHistoryDuplicates: true,
    completer: (line: string): [string[], string] => [complete(line), line],
  })
  const ended = new Promise<undefined>((resolve) => {
    lines.once('close', () => resolve(undefined))
    lines.on('SIGINT', () => (lines.line === '' ? resolve(undefined) : clearLine(lines)))
  })
  try {
    if (canDraw) output.write(PASTE_ON)
    const asked = lines.question(prompt)
    if (typed !== '') lines.write(typed)
    // Lines that nobody asked for come as events.
    lines.on('line', (more) => options.keep(`${more}\n`))
    const line = await Promise.race([asked, ended])
    if (line !== undefined) options.keep(lines.line)
    if (line === undefined) output.write('\n')
    else if (line.trim() !== '') history.add(withLineBreaks(line))
    return line === undefined ? undefined : withLineBreaks(line)
  } finally {
    lines.close()
    keys?.release()
    if (canDraw) output.write(PASTE_OFF)
  }
}

function clearLine(lines: Interface): void {
  lines.write(null, { ctrl: true, name: 'e' })
  lines.write(null, { ctrl: true, name: 'u' })
}
