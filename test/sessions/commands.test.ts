/** `stdio-bus sessions` and `stdio-bus attach` as programs (contract 12.21). */
import { spawn } from 'node:child_process'
import { expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { acpPool, heardByAgents, initialised } from '../interop/acp-peers.ts'
import { type Bus, busCommand, busEnv, startBus } from '../support/bus.ts'
import { config } from '../support/pools.ts'
import { eventually } from '../support/waiting.ts'

function start(): Promise<Bus> {
  const pool = acpPool({ protocol: 'acp', sessions: { keep_sec: 600 } })
  return startBus({ config: { ...config(pool), store: { path: 'store.db' } } })
}

/** A session whose client has gone, after it said this. */
async function left(bus: Bus, text: string): Promise<string> {
  const [client] = await initialised(bus, 1)
  const session = await client!.newSession()
  void client!.prompt(session, text).catch(() => {})
  await eventually(
    'the agent to be asked',
    () =>
      heardByAgents(bus).some(({ method, params }) => method === 'session/prompt' && params.sessionId === session) ||
      undefined,
  )
  await new Promise((resolve) => setTimeout(resolve, 100))
  client!.leave()
  return session
}

/** Runs a command of the program with this input. */
async function piped(
  bus: Bus,
  args: readonly string[],
  input: string,
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const [command, first] = busCommand()
  const child = spawn(command, [...first, ...args], {
    env: busEnv(bus.workspace),
    cwd: bus.workspace.folder,
    stdio: 'pipe',
  })
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (chunk) => (stdout += chunk))
  child.stderr.on('data', (chunk) => (stderr += chunk))
  child.stdin.end(input)
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  return { code, stdout, stderr }
}

test('lists, shows, follows and ends; agents write nothing into the terminal', async () => {
  verifies('12.21-commands', '12.21-escaped')
  const bus = await start()
  const unix = ['--unix', bus.workspace.path('bus.sock')]
  expect((await bus.run(['sessions', ...unix])).stdout).toBe('no sessions\n')
  const session = await left(bus, 'echo \u001b[2Jwipe')
  const listed = await bus.run(['sessions', 'ls', ...unix])
  expect(listed.stdout).toContain('\\u001b[2Jwipe')
  expect(listed.stdout).not.toContain('\u001b')
  const json = JSON.parse((await bus.run(['sessions', 'ls', '--json', ...unix])).stdout)
  expect(json.sessions).toMatchObject([
    { session, pool: 'agent', principal: 'local', state: 'detached', turn: 'idle', clients: [] },
  ])
  expect((await bus.run(['sessions', 'ls', '--state', 'attached', ...unix])).stdout).toBe('no sessions\n')
  expect((await bus.run(['sessions', 'show', session.slice(0, 1), ...unix])).stdout).toContain('detached, ends ')

  const followed = bus.run(['sessions', 'tail', session, '--from', '1', ...unix])
  await eventually('the follower', async () =>
    (await bus.run(['sessions', 'show', session, ...unix])).stdout.includes('observe') ? true : undefined,
  )
  expect((await bus.run(['sessions', 'end', session, ...unix])).code).toBe(0)
  const { code, stdout } = await followed
  expect(code).toBe(0)
  expect(stdout).toMatch(/> echo \\u001b\[2Jwipe\n\\u001b\[2Jwipe\n[\s\S]*the session has ended\n$/)
  const again = await bus.run(['sessions', 'tail', session, '--from', '1', '--json', ...unix])
  const numbers = again.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).seq)
  expect(numbers).toEqual(numbers.map((_, index) => index + 1))
  expect((await bus.run(['sessions', 'end', session, '--delete', ...unix])).code).toBe(0)
  expect((await bus.run(['sessions', ...unix])).stdout).toBe('no sessions\n')
})

test('the only running bus is found by itself; unknown and ambiguous ids are exit 1 and named', async () => {
  verifies('12.21-commands')
  const bus = await start()
  const first = await left(bus, 'echo one')
  const second = await left(bus, 'echo two')
  expect([first, second]).toEqual(['s1', 's2'])
  const unknown = await bus.run(['sessions', 'show', 'nothing'])
  expect(unknown).toMatchObject({ code: 1 })
  expect(unknown.stderr).toContain('there is no session "nothing"')
  const ambiguous = await bus.run(['attach', 's'])
  expect(ambiguous).toMatchObject({ code: 1 })
  expect(ambiguous.stderr).toContain('"s" is the beginning of 2 sessions: "s2" in "agent", "s1" in "agent"')
})

test('a pipe: each line is a prompt, stdout has the words of the agent alone, the session goes on', async () => {
  verifies('12.21-pipe')
  const bus = await start()
  const session = await left(bus, 'echo before')
  const done = await piped(bus, ['attach', session], 'echo one\n\ndrip 3\n')
  expect(done).toMatchObject({ code: 0, stdout: 'one\n0 1 2 \n', stderr: '' })
  expect((await bus.run(['sessions', 'ls', '--json'])).stdout).toContain('"detached"')
})

test('a pipe leaves questions to others', async () => {
  verifies('12.21-pipe')
  const bus = await start()
  const session = await left(bus, 'echo before')
  const asking = piped(bus, ['attach', session], 'permission\n')
  await eventually('the question', async () =>
    (await bus.run(['sessions', 'show', session])).stdout.includes('unanswered') ? true : undefined,
  )
  const [other] = await initialised(bus, 1)
  await other!.load(session)
  const done = await asking
  expect(done).toMatchObject({ code: 0, stdout: 'permission: selected yes\n' })
  expect(done.stderr).toContain('the agent asks (session/request_permission); this is left to others')
})

test('a pipe leaves the drive to an editor that is there when the agent asks, and takes it for the next prompt', async () => {
  verifies('12.21-pipe')
  const bus = await start()
  const [editor] = await initialised(bus, 1)
  const session = await editor!.newSession()
  const done = await piped(bus, ['attach', session], 'permission\necho two\npermission\ndrip 3\n')
  expect(done).toMatchObject({
    code: 0,
    stdout: 'permission: selected yes\ntwo\npermission: selected yes\n0 1 2 \n',
  })
  expect(editor!.asked).toHaveLength(2)
  expect(editor!.shown(session)).toContain('permission: selected yes')
})

test('a terminal: what was said, then a line is a prompt, choices are numbered, Ctrl-C cancels, Ctrl-D leaves', async () => {
  verifies('12.21-terminal')
  const bus = await start()
  const session = await left(bus, 'echo before')
  const [command, first] = busCommand()
  const words = [command, ...first, 'attach', session].map((word) => `'${word}'`).join(' ')
  const child = spawn('script', ['-qec', words, '/dev/null'], {
    env: { ...busEnv(bus.workspace), TERM: 'xterm', NO_COLOR: '1' },
    cwd: bus.workspace.folder,
  })
  let shown = ''
  child.stdout.on('data', (chunk) => (shown += chunk))
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  const shows = (text: string) => eventually(text, () => shown.includes(text) || undefined)
  await shows('> echo before')
  await shows('local has come')
  child.stdin.write('echo "now"\r')
  await eventually('the answer', () => shown.split('"now"').length > 2 || undefined)
  child.stdin.write('permission\r')
  await shows('1 to ')
  child.stdin.write('1\r')
  await shows('permission: selected yes')
  child.stdin.write('permission\r')
  await eventually('the second question', () => shown.split('1 to ').length > 2 || undefined)
  // Whoever stops the turn refuses what it was asked.
  child.stdin.write('\u0003')
  await shows('the turn has ended: cancelled')
  child.stdin.write('drip 100000\r')
  await shows('5 6 7')
  child.stdin.write('\u0003')
  await eventually('the second cancel', () => shown.split('cancelling').length > 2 || undefined)
  const heard = () => heardByAgents(bus).some(({ method }) => method === 'session/cancel') || undefined
  await eventually('the agent to be told', heard)
  child.stdin.write('\u0004')
  expect(await ended).toBe(0)
  expect(shown).not.toContain('refused')
  expect((await bus.run(['sessions', 'ls', '--json'])).stdout).toContain('"detached"')
})

test('a pipe to a session whose agent has gone: refused in one line, and nothing to look on', async () => {
  verifies('12.21-pipe')
  const bus = await start()
  const session = await left(bus, 'die')
  await eventually('its end', async () =>
    (await bus.run(['sessions', 'show', session])).stdout.includes('stored') ? true : undefined,
  )
  const refused = await piped(bus, ['attach', session], 'go on\n')
  expect(refused).toMatchObject({ code: 1, stdout: '' })
  expect(refused.stderr).toMatch(/^stdio-bus: The worker of this session has ended.*\n$/)
  expect(await piped(bus, ['attach', session, '--observe'], '')).toMatchObject({ code: 0, stderr: '' })
})

test('a terminal puts one question after the other', async () => {
  verifies('12.21-terminal')
  const bus = await start()
  const [editor] = await initialised(bus, 1, () => new Promise(() => {}))
  const session = await editor!.newSession()
  const turns = [editor!.prompt(session, 'permission'), editor!.prompt(session, 'permission')]
  await eventually('both questions', () => editor!.asked.length === 2 || undefined)
  const [command, first] = busCommand()
  const words = [command, ...first, 'attach', session].map((word) => `'${word}'`).join(' ')
  const child = spawn('script', ['-qec', words, '/dev/null'], {
    env: { ...busEnv(bus.workspace), TERM: 'xterm', NO_COLOR: '1' },
    cwd: bus.workspace.folder,
  })
  let shown = ''
  child.stdout.on('data', (chunk) => (shown += chunk))
  for (const count of [1, 2]) {
    await eventually(`question ${count}`, () => shown.split('? do it').length > count || undefined)
    child.stdin.write('1\r')
  }
  expect(await Promise.all(turns)).toEqual(['end_turn', 'end_turn'])
  child.stdin.write('\u0004')
  await new Promise((resolve) => child.once('close', resolve))
})

test('a bus that keeps no sessions says so', async () => {
  const bus = await startBus({ config: config(acpPool()) })
  const { code, stderr } = await bus.run(['sessions'])
  expect(code).toBe(1)
  expect(stderr).toContain('no method of this name')
})
