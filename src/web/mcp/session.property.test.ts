/**
 * A session in a simulated world: its connections break, come back, are read slowly or never, and its worker speaks whenever it
 * likes. The model counts by itself what was said and what each reader has seen.
 */
import { EventEmitter } from 'node:events'
import fc from 'fast-check'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { ClientId } from '../../kernel/vocabulary.ts'
import type { WebPort } from '../port.ts'
import { WebRequest } from '../web-request.ts'
import { Session } from './session.ts'

/** One connection as the runtime gives it: what is written waits until it is read, and is gone when the connection is. */
class Wire extends EventEmitter {
  readonly socket = {}
  status = 0
  headersSent = false
  destroyed = false
  /** The other end has heard that nothing more comes. */
  isEnded = false
  #unread: { readonly text: string; readonly done: (() => void) | undefined }[] = []
  #isEnding = false

  get writableLength(): number {
    return this.#unread.reduce((sum, { text }) => sum + text.length, 0)
  }

  writeHead(status: number): void {
    this.status = status
    this.headersSent = true
  }

  flushHeaders(): void {}

  write(text: string | Buffer, done?: () => void): void {
    this.#unread.push({ text: text.toString(), done })
  }

  end(text?: string | Buffer): void {
    if (text !== undefined) this.write(text)
    this.#isEnding = true
  }

  /** The other end reads all that there is. */
  read(): string {
    const read = this.#unread
    this.#unread = []
    for (const { done } of read) done?.()
    if (this.#isEnding && !this.isEnded) {
      this.isEnded = true
      this.emit('close')
    }
    return read.map(({ text }) => text).join('')
  }

  destroy(): void {
    if (this.destroyed || this.isEnded) return
    this.destroyed = true
    this.#unread = []
    this.emit('close')
  }
}

/** What a client knows of one stream, over all its connections. */
class Reader {
  /** The number of the request that it was opened for; 0: it is a GET. */
  readonly request: number
  wire: Wire
  lastId: string | undefined
  readonly seen: Said[] = []
  /** It lost its connection and has nothing by which it could come back. */
  isCut = false

  constructor(request: number, wire: Wire) {
    this.request = request
    this.wire = wire
  }

  read(): void {
    const text = this.wire.read()
    if (!text.includes('data: ')) {
      if (text.startsWith('{')) this.seen.push(JSON.parse(text))
      return
    }
    for (const block of text.split('\n\n')) this.#take(block.split('\n'))
  }

  #take(lines: readonly string[]): void {
    const field = (name: string) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2)
    this.lastId = field('id') ?? this.lastId
    const data = field('data')
    if (data) this.seen.push(JSON.parse(data))
  }

  drop(): void {
    this.wire.destroy()
    if (this.wire.destroyed && this.lastId === undefined) this.isCut = true
  }
}

interface Said {
  readonly id?: string | number
  readonly method?: string
  readonly result?: { readonly n: number }
  readonly params?: {
    readonly n?: number
    readonly progress?: number
    readonly progressToken?: unknown
    readonly m?: number
  }
}

/** A request as its worker has it. */
interface AtWorker {
  readonly n: number
  readonly id: unknown
  readonly token: unknown
  readonly posted: { readonly id: number }
  progress: number
  isAnswered: boolean
}

const WELCOME = '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25"}}'
const TALLY = { refused: () => {}, streamBegan: () => {}, streamEnded: () => {} }
const MAX_WAITED_MS = 50_000

class World {
  readonly readers: Reader[] = []
  readonly requests: AtWorker[] = []
  readonly refused: string[] = []
  /** Numbers of what was said that belongs to no request. */
  readonly told: number[] = []
  readonly session: Session
  readonly isCareful: boolean
  resumed = 0
  #toWorker: string[] = []
  #waitedMs = 0
  #count = 0
  #requests = 0

  constructor(isCareful: boolean) {
    this.isCareful = isCareful
    const client = {
      id: 1 as ClientId,
      leave: () => {},
      drained: () => {},
      send: (line: Buffer) => this.#toWorker.push(String(line)),
    }
    const refused = (reason: string) => void this.refused.push(reason)
    const port = { open: () => client, renew: () => {}, refused, isShuttingDown: false } as unknown as WebPort
    this.session = new Session(port, { answered: () => {}, ended: () => {} })
    this.session.open(this.#request(new Wire(), 'POST'), undefined, Buffer.from('{"id":0,"method":"initialize"}'))
    this.hear(WELCOME)
  }

  #request(wire: Wire, method: string): WebRequest {
    const request = Object.assign(new EventEmitter(), { url: '/mcp', headers: {}, method, complete: true })
    const web = new WebRequest(request as never, wire as never, { peer: '' } as never, TALLY)
    web.admitted = { identity: {} } as never
    return web
  }

  hear(line: string | object): void {
    this.session.received(
      Buffer.from(typeof line === 'string' ? line : JSON.stringify({ jsonrpc: '2.0', ...line })),
      undefined,
    )
  }

  /** With an id that may be in use. */
  post(id: number): void {
    const n = ++this.#requests
    const wire = new Wire()
    const params = { n, _meta: { progressToken: `t${id}` } }
    const line = JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params })
    this.#toWorker = []
    this.session.post(this.#request(wire, 'POST'), [Buffer.from(line)], false)
    const sent = JSON.parse(this.#toWorker[0]!)
    const token = sent.params._meta.progressToken
    this.requests.push({ n, id: sent.id, token, posted: { id }, progress: 0, isAnswered: false })
    this.readers.push(new Reader(n, wire))
  }

  listen(): void {
    const wire = new Wire()
    this.readers.push(new Reader(0, wire))
    this.session.get(this.#request(wire, 'GET'), undefined)
  }

  /** Whoever is careful reads what has come, and keeps a connection by which it could not come back. */
  drop(reader: Reader): void {
    if (this.isCareful && !reader.wire.destroyed) reader.read()
    if (!this.isCareful || reader.lastId !== undefined) reader.drop()
  }

  /** Gives whether there was anything to come back for. */
  resume(reader: Reader): boolean {
    if (!reader.wire.destroyed || reader.lastId === undefined || reader.isCut) return false
    const wire = new Wire()
    this.session.get(this.#request(wire, 'GET'), reader.lastId)
    expect([200, 204]).toContain(wire.status)
    reader.wire = wire
    this.resumed++
    return wire.status === 200
  }

  tell(method: string, isQuestion = false): void {
    const m = ++this.#count
    this.told.push(m)
    this.hear({ ...(isQuestion ? { id: `q${m}` } : {}), method, params: { m } })
  }

  progress(request: AtWorker | undefined): void {
    if (request === undefined || request.isAnswered) return
    const { token: progressToken, n } = request
    this.hear({ method: 'notifications/progress', params: { progressToken, n, progress: ++request.progress } })
  }

  answer(request: AtWorker | undefined): void {
    if (request === undefined || request.isAnswered) return
    request.isAnswered = true
    this.hear({ id: request.id, result: { n: request.n } })
  }

  wait(ms: number): void {
    this.#waitedMs += ms
    if (this.#waitedMs > MAX_WAITED_MS) return
    vi.advanceTimersByTime(ms)
    this.session.isIdleFor(Number.POSITIVE_INFINITY)
  }

  /** Everything that is under way arrives. */
  settle(): void {
    for (const request of this.requests) this.answer(request)
    this.listen()
    for (const reader of this.readers) {
      reader.read()
      while (this.resume(reader)) reader.read()
    }
  }
}

const at = fc.nat(9)
const step = fc.oneof(
  fc.record({ do: fc.constantFrom('post', 'progress', 'answer', 'drop', 'resume', 'read'), at }),
  fc.record({ do: fc.constantFrom('listen', 'log', 'ask', 'change', 'wait', 'read'), at }),
)

function play(world: World, { do: what, at: index }: { readonly do: string; readonly at: number }): void {
  const { readers, requests } = world
  const reader = readers.at(-1 - (index % Math.max(readers.length, 1)))
  const request = requests.at(-1 - (index % Math.max(requests.length, 1)))
  const deeds: Record<string, () => void> = {
    post: () => world.post(index % 3),
    progress: () => world.progress(request),
    answer: () => world.answer(request),
    drop: () => reader !== undefined && world.drop(reader),
    resume: () => reader !== undefined && world.resume(reader),
    read: () => reader?.wire.destroyed === false && reader.read(),
    listen: () => world.listen(),
    log: () => world.tell('notifications/message'),
    ask: () => world.tell('roots/list', true),
    change: () => world.tell('notifications/tools/list_changed'),
    wait: () => world.wait(index < 5 ? 1_100 : 4_000),
  }
  deeds[what]!()
}

function judge(world: World): void {
  const isCut = world.readers.some((reader) => reader.isCut)
  for (const { n, progress, posted } of world.requests) {
    const reader = world.readers.find(({ request }) => request === n)!
    const elsewhere = world.readers.filter((each) => each !== reader).flatMap(({ seen }) => seen)
    expect(
      elsewhere.filter(({ params, result }) => (params?.n ?? result?.n) === n),
      'misdelivered',
    ).toEqual([])
    const answers = reader.seen.filter(({ result }) => result?.n === n)
    const updates = reader.seen.filter(({ params }) => params?.n === n)
    expect(answers.every(({ id }) => id === posted.id)).toBe(true)
    expect(updates.every(({ params }) => params!.progressToken === `t${posted.id}`)).toBe(true)
    expect(updates.map(({ params }) => params!.progress)).toEqual(updates.map((_, index) => index + 1))
    if (reader.isCut) expect(answers.length).toBeLessThanOrEqual(1)
    else expect([answers.length, updates.length], `request ${n}`).toEqual([1, progress])
  }
  const seen = world.readers.flatMap((reader) => reader.seen).flatMap(({ params }) => params?.m ?? [])
  expect(new Set(seen).size, 'doubled').toBe(seen.length)
  const unseen = world.told.length - seen.length
  const givenUp = world.refused.filter((reason) => reason === 'no_stream').length
  if (!isCut) expect(unseen).toBe(givenUp)
}

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('over any schedule nothing is lost, doubled or misdelivered but what was on a connection that nothing can resume', () => {
  let resumed = 0
  let cut = 0
  fc.assert(
    fc.property(fc.array(step, { minLength: 40, maxLength: 150 }), fc.boolean(), (steps, isCareful) => {
      const world = new World(isCareful)
      for (const each of steps) play(world, each)
      resumed += world.resumed
      world.settle()
      cut += world.readers.filter((reader) => reader.isCut).length
      judge(world)
      vi.clearAllTimers()
    }),
    { numRuns: 300 },
  )
  // The schedules are such that both happen.
  expect(Math.min(resumed, cut)).toBeGreaterThan(50)
})
