/** A bus with `access` as a process: its principals, their tokens, and clients that come with them. */
import { chmodSync, renameSync } from 'node:fs'
import { afterAll, beforeAll, expect } from 'vitest'
import { digestOf, makeToken } from '../../src/access/token.ts'
import { type Bus, type BusOptions, launch, testWorkspace } from '../support/bus.ts'
import type { LineClient, Message } from '../support/line-client.ts'
import { config, pool } from '../support/pools.ts'
import { eventually } from '../support/waiting.ts'
import { Workspace } from '../support/workspace.ts'

export interface HouseOptions {
  /** By name: what the access file says of each; `pools` is all of them unless said. Each has one token. */
  readonly principals?: Record<string, object>
  /** What `access` says beside its file. */
  readonly access?: object
  readonly pools?: readonly object[]
  readonly limits?: Record<string, number>
  readonly more?: object
  readonly doors?: BusOptions['doors']
  readonly args?: readonly string[]
  readonly env?: Record<string, string>
}

type Row = Record<string, unknown> & { tokens: object[] }

const FILE = 'access.json'
export const UNKNOWN = { error: { code: -32600, data: { reason: 'unauthenticated' } } }
export const NOT_ALLOWED = { error: { code: -32600, data: { reason: 'not_allowed' } } }

/** One that nobody has. */
export const STRANGE = makeToken()

export class House {
  readonly workspace: Workspace
  readonly rows = new Map<string, Row>()
  readonly tokens: Record<string, string> = {}
  bus!: Bus
  #changes = 0

  constructor(workspace: Workspace, principals: Record<string, object>) {
    this.workspace = workspace
    for (const [name, rights] of Object.entries(principals)) {
      this.rows.set(name, { name, pools: ['*'], tokens: [], ...rights })
      this.tokens[name] = this.give(name)
    }
    this.#write()
  }

  /** Another token for a principal, known to the bus with the next change. */
  give(name: string, more: object = {}): string {
    const token = makeToken()
    this.rows.get(name)!.tokens.push({ sha256: digestOf(token), ...more })
    return token
  }

  /** Changes the file in one step, and waits until the bus has seen it. */
  async change(edit: (rows: Map<string, Row>) => void): Promise<void> {
    edit(this.rows)
    this.#write()
    const seen = ++this.#changes
    const told = () => this.bus.log.lines.filter(({ text }) => text.includes('the access file has changed')).length
    await eventually('the bus to see the access file', () => told() >= seen)
  }

  /** A connection through the TCP door if there is one, or the door that begins so; nothing is said. */
  knock(door = ''): Promise<LineClient> {
    const isTcp = door === '' && this.bus.addresses.some((address) => address.startsWith('tcp:'))
    return this.bus.connect(isTcp ? 'tcp:' : door)
  }

  /** Comes with the token of a principal, or with a text that is none of them; gives the answer too. */
  async present(who: string, params: object = {}, door = ''): Promise<[LineClient, Message]> {
    const client = await this.knock(door)
    const token = this.tokens[who] ?? who
    return [client, await client.ask({ jsonrpc: '2.0', id: 'open', method: 'bus::open', params: { token, ...params } })]
  }

  /** The same, and is let in. */
  async enter(who: string, params: object = {}, door = ''): Promise<LineClient> {
    const [client, answer] = await this.present(who, params, door)
    expect(answer).toMatchObject({ id: 'open', result: {} })
    return client
  }

  /** The lines of the audit log so far. */
  audit(): Message[] {
    return this.workspace.lines('audit.log').map((line) => JSON.parse(line))
  }

  /** The first line of the audit log, now or later, that has all of this. */
  audited(what: Record<string, unknown>): Promise<Message> {
    const isMeant = (line: Message) => Object.entries(what).every(([key, value]) => line[key] === value)
    return eventually(`an audit line ${JSON.stringify(what)}`, () => this.audit().find(isMeant))
  }

  writeText(text: string): void {
    const path = this.workspace.write(`${FILE}.new`, text)
    chmodSync(path, 0o600)
    renameSync(path, this.workspace.path(FILE))
  }

  #write(): void {
    this.writeText(JSON.stringify({ principals: [...this.rows.values()] }))
  }
}

async function build(workspace: Workspace, options: HouseOptions): Promise<House> {
  const house = new House(workspace, options.principals ?? { alice: {} })
  const { pools = [pool('echo')], limits, more, access, doors = ['tcp'], args = [], env = {} } = options
  const whole = config(pools, limits, { access: { file: FILE, ...access }, ...more })
  house.bus = await launch({ config: whole, doors, args, env }, workspace)
  return house
}

export function startHouse(options: HouseOptions = {}): Promise<House> {
  return build(testWorkspace(), options)
}

/** One for all tests of a file or a `describe`. */
export function sharedHouse(options: HouseOptions = {}): () => House {
  let house: House | undefined
  let workspace: Workspace | undefined
  beforeAll(async () => {
    workspace = new Workspace()
    house = await build(workspace, options)
  })
  afterAll(() => workspace?.remove())
  return () => house as House
}
