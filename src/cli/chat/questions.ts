/**
 * Where questions come from: the one of the command line, a prompt on the terminal, or the lines of a pipe.
 *
 * The terminal is held only while a question is being typed, so that Ctrl-C during a turn is a signal.
 */
import { createInterface } from 'node:readline/promises'

/** Ends with the input; Ctrl-C or Ctrl-D at the prompt ends it too. */
export async function* readQuestions(question: string | undefined): AsyncGenerator<string> {
  if (question !== undefined) return yield question
  if (!process.stdin.isTTY) return yield* readLines()
  process.stderr.write('Ask, and end with Ctrl-D. Ctrl-C cancels an answer.\n')
  for (;;) {
    const line = await readFromTerminal()
    if (line === undefined) return
    if (line.trim() !== '') yield line
  }
}

async function* readLines(): AsyncGenerator<string> {
  for await (const line of createInterface({ input: process.stdin })) {
    if (line.trim() !== '') yield line
  }
}

async function readFromTerminal(): Promise<string | undefined> {
  const lines = createInterface({ input: process.stdin, output: process.stdout })
  const ended = new Promise<undefined>((resolve) => {
    lines.once('SIGINT', () => resolve(undefined)).once('close', () => resolve(undefined))
  })
  try {
    return await Promise.race([lines.question('> '), ended])
  } finally {
    lines.close()
  }
}
