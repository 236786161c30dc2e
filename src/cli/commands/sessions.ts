/** `stdio-bus sessions`: which sessions a bus keeps, what is said in one, and the end of one. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import { Screen } from '../chat/screen.ts'
import { addReachOptions, type ReachOptions } from '../reach.ts'
import { BusLine, type Message } from '../sessions/bus-line.ts'
import { findSession, isLive, listSessions, type Wish } from '../sessions/known-sessions.ts'
import { type Drawing, renderSession, renderSessions } from '../sessions/render.ts'
import { EVENT, Transcript } from '../sessions/transcript.ts'

interface Common extends ReachOptions {
  readonly pool?: string
  readonly json?: boolean
}

const STATES = ['attached', 'detached', 'stored', 'lost']

export function addSessions(program: Command): void {
  const sessions = program.command('sessions').description('the sessions that a bus keeps: list, look, follow, end')
  reach(sessions.command('ls', { isDefault: true }).description('the sessions, newest first'))
    .addOption(new Option('--state <state>', 'only these').choices(STATES))
    .option('--all', 'those of others too, for an administrator')
    .option('--json', 'print one JSON document')
    .action(run(list))
  reach(sessions.command('show').description('one session').argument('<session>', 'its id, or the beginning of it'))
    .option('--json', 'print one JSON document')
    .action(run(show))
  reach(sessions.command('tail').description('what is said in a session, until it ends').argument('<session>'))
    .option('--from <number>', 'from this line on (default: from now)', parseNumber)
    .option('--json', 'print one JSON object a line')
    .action(run(tail))
  reach(sessions.command('end').description('end a session').argument('<session>'))
    .option('--delete', 'with all that was said')
    .action(run(end))
}

function reach(command: Command): Command {
  const found = command
    .option('--pool <name>', 'only of this pool')
    .option('--unix <path>', 'a Unix socket of the bus (default: the only running bus)')
  return addReachOptions(found)
}

function run<Args extends unknown[]>(act: (line: BusLine, ...args: Args) => Promise<void>) {
  return async (...args: [...Args, unknown]): Promise<void> => {
    const given = args.slice(0, -1) as Args
    const line = await BusLine.open(given.at(-1) as ReachOptions)
    try {
      await act(line, ...given)
    } finally {
      await line.close()
    }
  }
}

async function list(line: BusLine, { pool, state, all, json }: Common & Wish): Promise<void> {
  const sessions = await listSessions(line, { pool, state, all })
  if (json) return print(`${JSON.stringify({ sessions }, null, 2)}\n`)
  print(sessions.length === 0 ? 'no sessions\n' : renderSessions(sessions, drawing()))
}

async function show(line: BusLine, session: string, { pool, json }: Common): Promise<void> {
  const row = await findSession(line, session, pool)
  print(json ? `${JSON.stringify(row, null, 2)}\n` : renderSession(row, drawing()))
}

interface TailOptions extends Common {
  readonly from?: number
}

/** Until the session ends; of one that has ended, all that there is. */
async function tail(line: BusLine, session: string, { pool, from, json }: TailOptions): Promise<void> {
  const row = await findSession(line, session, pool)
  const first = from ?? row.seq + 1
  let finish: () => void = () => {}
  const over = new Promise<void>((resolve) => {
    finish = resolve
  })
  const reader = json ? jsonReader(first) : textReader(first)
  line.onMessage = (message) => {
    const seq = reader(message)
    const isEnd = message.method === EVENT && ['ended', 'lost'].includes(message.params.kind)
    if (isEnd || (!isLive(row) && seq >= row.seq)) finish()
  }
  await line.ask('bus::sessions.attach', { session: row.session, pool: row.pool, role: 'observe', from: first })
  if (!isLive(row) && first > row.seq) return
  await Promise.race([over, line.ended])
}

function textReader(first: number): (message: Message) => number {
  const screen = new Screen({ answer: process.stdout, aside: process.stdout, color: drawing().color })
  const transcript = new Transcript(screen, first - 1)
  return (message) => {
    transcript.take(message)
    return transcript.seq
  }
}

/** Every line with its number. */
function jsonReader(first: number): (message: Message) => number {
  let seq = first - 1
  return (message) => {
    seq = message.method === EVENT ? message.params.seq : seq + 1
    const { method, params } = message
    print(`${JSON.stringify({ seq, method, params })}\n`)
    return seq
  }
}

async function end(line: BusLine, session: string, options: Common & { readonly delete?: boolean }): Promise<void> {
  const row = await findSession(line, session, options.pool)
  const isDeleted = options.delete === true
  await line.ask('bus::sessions.end', { session: row.session, pool: row.pool, delete: isDeleted })
  process.stderr.write(isDeleted ? 'the session has ended, and what was said is deleted\n' : 'the session has ended\n')
}

function print(text: string): void {
  process.stdout.write(text)
}

function drawing(): Drawing {
  const { isTTY, columns } = process.stdout
  return { color: isTTY === true && !process.env['NO_COLOR'], columns: columns ?? 100, nowMs: Date.now() }
}

function parseNumber(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('it must be a number from 0 on.')
}
