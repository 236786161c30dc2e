/**
 * A line to a bus for somebody who looks after its sessions: asks methods, hears what is said, answers what is asked.
 *
 * Found by the door that is named, else the only bus that runs for this user. A bus that goes is not looked for.
 */
import { type BusAddress, dial, parseAnnounced, showAddress } from '../../client/address.ts'
import { BusConnection } from '../../client/connection.ts'
import { ControlFailure } from '../../console/control-client.ts'
import { findRunning, type RunRecord } from '../../console/running.ts'
import { givenToken, namedAddress, type ReachOptions } from '../reach.ts'

export interface Message {
  readonly id?: string | number
  readonly method?: string
  // biome-ignore lint/suspicious/noExplicitAny: what peers say is looked at where it is shown
  readonly params?: any
  // biome-ignore lint/suspicious/noExplicitAny: the same
  readonly result?: any
  readonly error?: { readonly code: number; readonly message: string; readonly data?: { readonly reason?: string } }
}

/** The bus has refused something; the message is its own. */
export class Refused extends ControlFailure {
  readonly reason: string | undefined
  readonly exitCode = 1

  constructor({ message, data }: NonNullable<Message['error']>) {
    super(message, data)
    this.reason = data?.reason
  }
}

export class BusLine {
  readonly #connection: BusConnection
  readonly #waiting = new Map<number, (message: Message) => void>()
  readonly #address: BusAddress
  #asked = 0
  /** Told of everything that is no answer, in order. */
  onMessage: (message: Message) => void = () => {}
  /** Resolves when the connection has ended. */
  readonly ended: Promise<void>

  private constructor(connection: BusConnection, address: BusAddress) {
    this.#connection = connection
    this.#address = address
    this.ended = this.#listen()
  }

  static async open(options: ReachOptions): Promise<BusLine> {
    const address = namedAddress(options) ?? (await onlyBus())
    const token = givenToken(options)
    const connection = new BusConnection({ dial: () => dial(address), token, reconnectTimeoutMs: 0 }, {})
    await connection.open().catch((error: Error) => {
      throw 'exitCode' in error ? error : new ControlFailure(error.message, { cause: error })
    })
    return new BusLine(connection, address)
  }

  /** Fails with what the bus answers; `onAnswer` is told before anything that comes behind the answer. */
  async ask(
    method: string,
    params: object = {},
    onAnswer: (answer: Message) => void = () => {},
  ): Promise<NonNullable<Message['result']>> {
    const id = ++this.#asked
    const answered = new Promise<Message>((resolve) =>
      this.#waiting.set(id, (answer) => {
        onAnswer(answer)
        resolve(answer)
      }),
    )
    await this.say({ id, method, params })
    const lost = { message: `the bus at ${showAddress(this.#address)} has gone`, code: 0 }
    const { result, error } = await Promise.race([answered, this.ended.then((): Message => ({ error: lost }))])
    if (error !== undefined) throw new Refused(error)
    return result
  }

  say(message: Message): Promise<void> {
    return this.#connection.send(JSON.stringify({ jsonrpc: '2.0', ...message }))
  }

  close(): Promise<void> {
    return this.#connection.close()
  }

  async #listen(): Promise<void> {
    try {
      for await (const line of this.#connection.lines()) this.#take(JSON.parse(line.toString('utf8')) as Message)
    } catch {
      // That it has gone is told to whoever waits.
    }
  }

  #take(message: Message): void {
    const waiting = message.method === undefined ? this.#waiting.get(Number(message.id)) : undefined
    if (waiting === undefined) return this.onMessage(message)
    this.#waiting.delete(Number(message.id))
    waiting(message)
  }
}

async function onlyBus(): Promise<BusAddress> {
  const running = await findRunning()
  if (running.length === 0)
    throw new ControlFailure(
      'no bus is running for this user: start one, or name a door of it with --unix, --tcp or --tls',
    )
  if (running.length > 1) {
    const names = running.map(({ addresses, config }) => `  ${addresses.join(', ')}  (${config})`)
    throw new ControlFailure(`several buses are running: name a door with --unix, --tcp or --tls\n${names.join('\n')}`)
  }
  return doorOf(running[0]!)
}

function doorOf({ addresses, pid }: RunRecord): BusAddress {
  const doors = addresses.flatMap((address) => parseAnnounced(address) ?? [])
  const door = doors.find((each) => 'unix' in each) ?? doors[0]
  if (door !== undefined) return door
  throw new ControlFailure(`the bus with pid ${pid} has no door that can be used from here: name one with --tls`)
}
