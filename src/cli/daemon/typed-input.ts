/**
 * A terminal as the one client of a bus: what is typed there is looked at before it becomes a message.
 *
 * At every other door a line that is not JSON closes the client (contract 4.3). A person who types one is told instead, and
 * types again. Whole lines come from a terminal, so nothing is held back but the end of a long one.
 */
import { type Readable, Transform, type Writable } from 'node:stream'

export const WELCOME =
  'This terminal is the one client of the bus: type a line such as {"id":1,"method":"hello"}, and Ctrl-D to stop. ' +
  'For a bus that others reach: stdio-bus start'
const ADVICE =
  'That is not a message: type one JSON object on one line, such as {"id":1,"method":"hello"}; Ctrl-D stops the bus'

/** What is typed, without what is no message; `say` is told of that. */
export function typedMessages(input: Readable, say: (sentence: string) => void): Readable {
  let held = ''
  const messages = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const lines = (held + chunk.toString('utf8')).split('\n')
      held = lines.pop() ?? ''
      const passed = lines.filter((line) => isMessage(line, say))
      done(null, passed.map((line) => `${line}\n`).join(''))
    },
    flush(done) {
      done(null, held !== '' && isMessage(held, say) ? `${held}\n` : '')
    },
  })
  return input.pipe(messages)
}

function isMessage(line: string, say: (sentence: string) => void): boolean {
  if (line.trim() === '') return false
  if (isObject(line)) return true
  say(ADVICE)
  return false
}

function isObject(line: string): boolean {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}

/** The streams of the stdio door. */
export function stdioStreams(): { readonly stdin: Readable; readonly stdout: Writable } {
  if (!process.stdin.isTTY) return process
  const say = (sentence: string): void => void process.stderr.write(`${sentence}\n`)
  say(WELCOME)
  return { stdin: typedMessages(process.stdin, say), stdout: process.stdout }
}
