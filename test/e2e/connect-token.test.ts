/** The token of a client: said first, waited for, refused once, kept from everybody (contract 9.3, 9.16, 9.26). */
import { chmodSync, readdirSync, readFileSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { describe, expect, onTestFinished, test } from 'vitest'
import { BusRefused, connect } from '../../src/client/index.ts'
import { verifies } from '../conformance/verifies.ts'
import { runBus, startBus, testWorkspace } from '../support/bus.ts'
import { config, pool } from '../support/pools.ts'
import { eventually, sleep } from '../support/waiting.ts'
import type { Workspace } from '../support/workspace.ts'
import { startShim, startShimWith } from './connect-harness.ts'

const GOOD = 'sbus_this-one-is-known'
const BAD = 'sbus_this-one-is-not'

// biome-ignore lint/suspicious/noExplicitAny: whatever a client says
type Said = any

/** A stand-in that speaks the one exchange of admission, and answers everything after it by its method. */
class Gate {
  readonly port: number
  /** What each connection said, in order. */
  readonly visits: Said[][] = []
  /** Tokens that come in. */
  readonly known = new Set([GOOD])
  /** The answer to `bus::open` waits so long. */
  waitMs = 0
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  static async open(port = 0): Promise<Gate> {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
    const gate = new Gate(server)
    onTestFinished(() => gate.close())
    return gate
  }

  private constructor(server: Server) {
    this.#server = server
    this.port = (server.address() as { port: number }).port
    server.on('connection', (socket) => this.#take(socket))
  }

  get address(): string {
    return `127.0.0.1:${this.port}`
  }

  get last(): Said[] {
    return this.visits.at(-1) ?? []
  }

  /** Every outstanding request is answered so, and the connections are closed. */
  revoke(): void {
    this.known.clear()
    for (const socket of this.#sockets) socket.emit('revoked')
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  #take(socket: Socket): void {
    const said: Said[] = []
    const owed: unknown[] = []
    let isAdmitted = false
    this.visits.push(said)
    this.#sockets.add(socket.on('error', () => {}).on('close', () => this.#sockets.delete(socket)))
    const tell = (message: object): unknown => socket.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
    const refuse = (id: unknown): void => {
      const data = { reason: 'unauthenticated' }
      tell({ id, error: { code: -32600, message: 'Nobody is known by this token.', data } })
    }
    socket.on('revoked', () => {
      for (const id of owed) refuse(id)
      socket.end()
    })
    createInterface({ input: socket }).on('line', async (line) => {
      const message = JSON.parse(line)
      said.push(message)
      const { id, method, params } = message
      if (method === 'bus::open' && this.known.has(params.token)) {
        await sleep(this.waitMs)
        isAdmitted = true
        tell({ id, result: { pool: params.pool ?? null, principal: 'alice', role: 'user' } })
      } else if (!isAdmitted) {
        refuse(id)
        socket.end()
      } else if (method === 'never') owed.push(id)
      else if (id !== undefined) tell({ id, result: { method } })
    })
  }
}

function tokenFile(workspace: Workspace, token = GOOD): string {
  const path = workspace.write('token', `${token}\n`)
  chmodSync(path, 0o600)
  return path
}

describe('9.16 the token', () => {
  test('9.16 is said first, with the pool, and everything else waits for the answer', async () => {
    verifies('9.16-token')
    const gate = await Gate.open()
    gate.waitMs = 300
    const workspace = testWorkspace()
    const shim = startShim(workspace, '--tcp', gate.address, '--pool', 'coder', '--token-file', tokenFile(workspace))
    shim.host.send({ id: 1, method: 'first' })
    await eventually('the opening', () => gate.last.length === 1)
    await sleep(100)
    expect(gate.last).toMatchObject([{ method: 'bus::open', params: { token: GOOD, pool: 'coder' } }])
    expect(await shim.host.next()).toMatchObject({ id: 1, result: { method: 'first' } })
    expect(gate.last.map(({ method }) => method)).toEqual(['bus::open', 'first'])
    shim.host.endWriting()
    expect((await shim.ended()).code).toBe(0)
    expect(gate.visits).toHaveLength(1)
  })

  test('9.16 comes from STDIO_BUS_TOKEN where no file is named, and a file goes before', async () => {
    verifies('9.16-token')
    const gate = await Gate.open()
    const workspace = testWorkspace()
    const first = startShimWith(workspace, { STDIO_BUS_TOKEN: GOOD }, '--tcp', gate.address)
    expect(await first.host.ask({ id: 1, method: 'm' })).toMatchObject({ result: {} })
    expect(gate.last[0]).toEqual({
      jsonrpc: '2.0',
      id: expect.anything(),
      method: 'bus::open',
      params: { token: GOOD },
    })
    const file = tokenFile(workspace)
    const second = startShimWith(workspace, { STDIO_BUS_TOKEN: BAD }, '--tcp', gate.address, '--token-file', file)
    expect(await second.host.ask({ id: 1, method: 'm' })).toMatchObject({ result: {} })
    const third = startShimWith(workspace, { STDIO_BUS_TOKEN: '' }, '--tcp', gate.address, '--pool', 'p')
    expect((await third.ended()).code).toBe(1)
    expect(gate.last[0].params).toEqual({ pool: 'p' })
  })

  test('9.16 is said again to a bus that came back, as the file then has it', async () => {
    verifies('9.16-token')
    const gate = await Gate.open()
    const workspace = testWorkspace()
    const file = tokenFile(workspace)
    const shim = startShim(workspace, '--tcp', gate.address, '--token-file', file)
    await shim.host.ask({ id: 1, method: 'm' })
    await gate.close()
    await shim.hasLostBus()
    tokenFile(workspace, 'sbus_the-next-one')
    const next = await Gate.open(gate.port)
    next.known.add('sbus_the-next-one')
    expect(await shim.host.ask({ id: 2, method: 'm' }, 15_000)).toMatchObject({ id: 2, result: {} })
    expect(next.last[0].params).toEqual({ token: 'sbus_the-next-one' })
  })

  test('9.16 refused: exit 1 at once with the reason, the host is told, and the token is not', async () => {
    verifies('9.16-refused')
    const gate = await Gate.open()
    const workspace = testWorkspace()
    const shim = startShim(workspace, '--tcp', gate.address, '--token-file', tokenFile(workspace, BAD))
    shim.host.send({ id: 'x', method: 'm' })
    const refusal = await shim.host.next()
    expect(refusal).toMatchObject({ id: 'x', error: { code: -32600, data: { reason: 'unauthenticated' } } })
    expect((await shim.ended()).code).toBe(1)
    expect(await shim.said).toMatch(/refuses this connection: Nobody is known by this token/)
    expect(`${await shim.said}${JSON.stringify(refusal)}`).not.toContain(BAD)
    expect(gate.visits).toHaveLength(1)
  })

  test('9.16 revoked: what is owed is answered, the token is tried once more, then exit 1', async () => {
    verifies('9.16-refused')
    const gate = await Gate.open()
    const workspace = testWorkspace()
    const shim = startShim(workspace, '--tcp', gate.address, '--token-file', tokenFile(workspace))
    shim.host.send({ id: 1, method: 'never' })
    await eventually('the request', () => gate.last.length === 2)
    gate.revoke()
    expect(await shim.host.next()).toMatchObject({ id: 1, error: { data: { reason: 'unauthenticated' } } })
    expect((await shim.ended()).code).toBe(1)
    expect(gate.visits).toHaveLength(2)
  })

  test('9.16 none where one is wanted: the first request is answered by the bus, then exit 1 at once', async () => {
    verifies('9.16-refused')
    const gate = await Gate.open()
    const shim = startShim(testWorkspace(), '--tcp', gate.address)
    expect(await shim.host.ask({ id: 1, method: 'm' })).toMatchObject({
      error: { data: { reason: 'unauthenticated' } },
    })
    expect((await shim.ended()).code).toBe(1)
    expect(await shim.said).not.toMatch(/looking for it/)
    expect(gate.visits).toHaveLength(1)
  })

  test.each<[string, (workspace: Workspace) => string, RegExp]>([
    ['open to its group', (workspace) => changed(tokenFile(workspace), 0o640), /open to other users.*chmod 600/],
    ['open to others', (workspace) => changed(tokenFile(workspace), 0o604), /open to other users/],
    ['not there', (workspace) => workspace.path('none'), /none does not exist/],
    ['empty', (workspace) => tokenFile(workspace, ''), /holds no token/],
    ['with two words', (workspace) => tokenFile(workspace, `${GOOD} ${BAD}`), /holds no token/],
    ['a folder', (workspace) => workspace.home, /is a folder/],
  ])('9.16 a token file that is %s: exit 2, and nothing is said to anybody', async (_what, file, why) => {
    verifies('9.16-token-file')
    const gate = await Gate.open()
    const workspace = testWorkspace()
    const args = ['--tcp', gate.address, '--token-file', file(workspace)]
    for (const command of [['connect'], ['chat', 'hi']]) {
      const done = await runBus([...command, ...args], { workspace })
      expect(done).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(why) })
      expect(done.stderr).not.toContain('sbus_')
    }
    expect(gate.visits).toEqual([])
  })

  test('9.16 chat: said first; refused: exit 1 with the reason', async () => {
    verifies('9.16-refused')
    const gate = await Gate.open()
    const workspace = testWorkspace()
    const args = ['chat', 'hi', '--tcp', gate.address, '--pool', 'p', '--token-file', tokenFile(workspace, BAD)]
    const done = await runBus(args, { workspace })
    expect(done).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(/Nobody is known by this token/) })
    expect(gate.visits).toMatchObject([[{ method: 'bus::open', params: { token: BAD, pool: 'p' } }]])
  })

  test('9.16 the library: token, tokenFile, and BusRefused', async () => {
    verifies('9.16-token')
    const gate = await Gate.open()
    const workspace = testWorkspace()
    for (const proof of [{ token: GOOD }, { tokenFile: tokenFile(workspace) }]) {
      const connection = await connect({ tcp: gate.address, ...proof })
      expect(gate.last[0].params).toEqual({ token: GOOD })
      await connection.close()
    }
    const refused = await connect({ tcp: gate.address, token: BAD }).catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(BusRefused)
    expect(refused).toMatchObject({ reason: 'unauthenticated' })
    await expect(connect({ tcp: gate.address, token: 'two words' })).rejects.toThrow(/holds no token/)
    await expect(connect({ tcp: gate.address, token: GOOD, tokenFile: 'x' })).rejects.toThrow(/one of token/)
  })
})

describe('9.26 nobody inherits STDIO_BUS_TOKEN', () => {
  const env = { STDIO_BUS_TOKEN: GOOD, BESIDE: 'handed over' }

  test('9.26 no worker, though it inherits everything else', async () => {
    verifies('9.26-token-variable')
    const bus = await startBus({ config: config(pool('prints-env', { inherit_env: true })), env })
    const { result } = await (await bus.connect()).ask({ id: 1, method: 'm' })
    expect(result.env).toMatchObject({ BESIDE: 'handed over' })
    expect(JSON.stringify(result.env)).not.toContain(GOOD)
    expect(bus.log.text).not.toContain(GOOD)
  })

  test('9.26 no bus that connect starts, and nobody it starts', async () => {
    verifies('9.26-token-variable')
    const workspace = testWorkspace()
    const file = workspace.write('bus.json', config(pool('prints-env', { inherit_env: true })))
    const shim = startShimWith(workspace, { BESIDE: 'handed over' }, '--autostart', '--config', file)
    const before = await shim.host.ask({ id: 1, method: 'm' }, 15_000)
    expect(before.result.env).toMatchObject({ BESIDE: 'handed over' })

    const other = testWorkspace()
    const otherFile = other.write('bus.json', config(pool('prints-env', { inherit_env: true })))
    // Its bus knows no token and may refuse it: what counts is what the bus was started with.
    const second = startShimWith(other, env, '--autostart', '--config', otherFile)
    const pid = await eventually('the bus', () => /"pid":(\d+)/.exec(readLog(other))?.[1], 15_000)
    const started = readFileSync(`/proc/${pid}/environ`, 'utf8')
    expect(started).toContain('BESIDE=handed over')
    expect(started).not.toContain(GOOD)
    second.host.close()
  })

  test('9.26 no agent that chat starts', async () => {
    verifies('9.26-token-variable')
    const script = 'process.stderr.write(JSON.stringify(process.env)); process.exit(3)'
    const args = ['chat', 'hi', '--', process.execPath, '-e', script]
    const done = await runBus(args, { workspace: testWorkspace(), env })
    expect(done.stderr).toContain('handed over')
    expect(done.stderr).not.toContain(GOOD)
  })

  function readLog(workspace: Workspace): string {
    const folder = `${workspace.home}/.stdio-bus`
    try {
      const [name] = readdirSync(folder).filter((each) => each.endsWith('.log'))
      return name === undefined ? '' : readFileSync(`${folder}/${name}`, 'utf8')
    } catch {
      return ''
    }
  }
})

function changed(path: string, mode: number): string {
  chmodSync(path, mode)
  return path
}
