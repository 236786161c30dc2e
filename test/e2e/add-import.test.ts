/** `add`, `import` and `remove`: pools come and go in a file that people comment (contract 8.4). */
import { chmodSync, readdirSync, statSync, symlinkSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { runBus, startBus, testWorkspace } from '../support/bus.ts'
import { connectTo } from '../support/line-client.ts'
import { pool } from '../support/pools.ts'
import type { Finished } from '../support/run.ts'

const FILE = 'stdio-bus.json'
const COMMENTED = `{
  // my pools
  "pools": [
    { "id": "echo", "agent": "echo" }, // the first
  ],
  /* and this */
}
`

function world(text?: string) {
  const workspace = testWorkspace()
  if (text !== undefined) workspace.write(FILE, text)
  const run = (...args: string[]): Promise<Finished> => runBus(args, { workspace, timeoutMs: 30_000 })
  return { workspace, run, text: () => workspace.read(FILE) }
}

const worker = pool('echo', { id: 'x' })

describe('add', () => {
  test('a command: comments stay, the first pool stays the default, and the bus serves both', async () => {
    const { run, text } = world(COMMENTED)
    const done = await run('add', 'files', '--env', 'A=b', '--', worker.command, ...worker.args)
    expect(done).toMatchObject({ code: 0, stderr: '' })
    expect(done.stdout).toContain('default_pool is now "echo"')
    expect(done.stdout).toContain('Next: stdio-bus start\n')
    for (const comment of ['// my pools', '// the first', '/* and this */']) expect(text()).toContain(comment)
    expect((await run('start')).stdout).toMatch(/echo: 1 ready\n {2}files: 1 ready/)
    const [bus] = JSON.parse((await run('ls', '--json')).stdout)
    const client = await connectTo(bus.addresses[0])
    expect(await client.ask({ id: 1, method: 'm', pool: 'files' })).toHaveProperty('result.pid')
    expect((await run('add', 'more', '--agent', 'echo')).stdout).toContain('Next: stdio-bus reload\n')
    expect((await run('reload')).code).toBe(0)
    expect(await client.ask({ id: 2, method: 'm', pool: 'more' })).toHaveProperty('result')
    await run('stop')
  })

  test('without a file one is made that works', async () => {
    const { run, text, workspace } = world()
    expect((await run('add', 'gem', '--registry', 'gemini', '--instances', '2', '--env', 'GEMINI_API_KEY')).code).toBe(
      0,
    )
    expect(text()).toContain(`"GEMINI_API_KEY": "\${GEMINI_API_KEY}"`)
    expect(statSync(workspace.path(FILE)).mode & 0o777).toBe(0o600)
    const checked = await run('check')
    expect(checked.stdout).toContain('Set GEMINI_API_KEY')
  })

  test.each([
    ['an agent of the registry', ['--registry', 'gemini'], 'gemini'],
    ['a URL', ['--url', 'https://mcp.example.com:8443/mcp'], 'mcp.example.com'],
    ['an agent that ships with the bus', ['--agent', 'openai'], 'openai'],
  ])('without a name %s has its own', async (_, args, name) => {
    const { run, text } = world(COMMENTED)
    expect((await run('add', ...args)).stdout).toContain(`added ${name} to stdio-bus.json\n`)
    expect(text()).toContain(`"id": "${name}"`)
  })

  test('what keeps it from working here is said at once', async () => {
    const { run } = world(COMMENTED)
    const done = await run('add', 'x', '--env', 'NOT_SET', '--', 'no-such-program-anywhere')
    expect(done.code).toBe(0)
    expect(done.stderr).toContain('no-such-program-anywhere')
    expect(done.stderr).toContain('Set NOT_SET')
  })

  test('the mode of the file stays, a link stays a link, and no draft is left behind', async () => {
    const { run, workspace } = world()
    workspace.write('real.json', COMMENTED)
    chmodSync(workspace.path('real.json'), 0o644)
    symlinkSync('real.json', workspace.path(FILE))
    expect((await run('add', 'x', '--agent', 'echo')).code).toBe(0)
    expect(workspace.read('real.json')).toContain('"x"')
    expect(statSync(workspace.path('real.json')).mode & 0o777).toBe(0o644)
    expect(readdirSync(workspace.folder).sort()).toEqual(['home', 'real.json', FILE])
  })

  test.each([
    ['nothing to run', ['x'], /what is "x" to run\? give a command after --/],
    ['a command without a name', ['--', 'npx', 'server'], /has no name: stdio-bus add NAME -- COMMAND/],
    ['a path instead of a URL', ['--url', 'unix:bus.sock'], /has no name: stdio-bus add NAME/],
    ['nothing at all', [], /has no name: stdio-bus add NAME/],
    ['two ways', ['x', '--agent', 'echo', '--registry', 'gemini'], /--registry and --agent exclude each other/],
    ['a name that is taken', ['echo', '--agent', 'echo'], /has a pool "echo" already .*stdio-bus remove echo/],
    ['a name that is reserved', ['bus', '--agent', 'echo'], /"bus"; allowed: any other name/],
    ['an agent that is not there', ['x', '--agent', 'opnai'], /did you mean "openai"/i],
    ['a variable without a name', ['x', '--agent', 'echo', '--env', '=b'], /NAME=VALUE/],
    ['a command without --', ['x', 'npx', 'server'], /stdio-bus add x -- npx server/],
  ])('%s: exit 2, and the file stays as it is', async (_, args, said) => {
    const { run, text } = world(COMMENTED)
    const done = await run('add', ...args)
    expect(done.stderr).toMatch(said)
    expect(done.code).toBe(2)
    expect(text()).toBe(COMMENTED)
  })

  test('a file with mistakes is not touched', async () => {
    const broken = '{ "pools": [ { "id": "a", "comand": "x" } ] }'
    const { run, text } = world(broken)
    const done = await run('add', 'x', '--agent', 'echo')
    expect([done.code, done.stderr]).toEqual([2, expect.stringContaining('correct them first')])
    expect(text()).toBe(broken)
  })

  test('several at once: none is lost', async () => {
    const { run, text } = world(COMMENTED)
    const names = ['a', 'b', 'c', 'd']
    const done = await Promise.all(names.map((name) => run('add', name, '--agent', 'echo')))
    expect(done.map(({ code }) => code)).toEqual([0, 0, 0, 0])
    for (const name of names) expect(text()).toContain(`"id": "${name}"`)
  })
})

describe('remove', () => {
  test('gives back what add has added to', async () => {
    const { run, text } = world(COMMENTED.replace('\n  /*', '\n  "default_pool": "echo",\n  /*'))
    const before = text()
    await run('add', 'x', '--agent', 'echo', '--instances', '2')
    expect((await run('remove', 'x')).stdout).toContain('removed x from stdio-bus.json')
    expect(text()).toBe(before)
  })

  test.each([
    ['one that is not there', ['files'], /has no pool "files": it has echo/],
    ['the only one', ['echo'], /the only pool/],
  ])('%s: exit 2', async (_, args, said) => {
    const { run, text } = world(COMMENTED)
    const done = await run('remove', ...args)
    expect([done.code, done.stderr]).toEqual([2, expect.stringMatching(said)])
    expect(text()).toBe(COMMENTED)
  })

  test('one that others lean on: exit 2 with where', async () => {
    const { run } = world('{"pools":[{"id":"a","agent":"echo"},{"id":"b","agent":"echo","fallback":"a"}]}')
    const done = await run('remove', 'a')
    expect([done.code, done.stderr]).toEqual([2, expect.stringContaining('fallback')])
  })

  test('no file: exit 2', async () => {
    expect((await world().run('remove', 'x')).code).toBe(2)
  })
})

describe('import', () => {
  const servers = { one: { command: worker.command, args: worker.args }, two: { command: 'no-such-program' } }

  test('a file of Claude: what works serves, what does not is said, a second time nothing is new', async () => {
    const { run, workspace, text } = world(COMMENTED)
    workspace.write('.mcp.json', { mcpServers: { ...servers, off: { command: 'x', disabled: true } } })
    const done = await run('import', '.mcp.json')
    expect(done.stdout).toMatch(/added one\nadded two\nNext: stdio-bus start/)
    expect(done.stderr).toContain('left out off: it is disabled there')
    expect(done.stderr).toContain('no-such-program')
    expect(text()).toContain('// the first')
    const before = text()
    const again = await run('import', '.mcp.json')
    expect(again).toMatchObject({ code: 0, stdout: 'nothing new for stdio-bus.json\n' })
    expect(text()).toBe(before)
    const bus = await startBus({ workspace, config: text(), defaultControl: true })
    expect(await (await bus.connect()).ask({ id: 1, method: 'm', pool: 'one' })).toHaveProperty('id', 1)
  })

  test('--only and --dry-run', async () => {
    const { run, workspace, text } = world(COMMENTED)
    workspace.write('mcp.json', { servers })
    const shown = JSON.parse((await run('import', 'mcp.json', '--dry-run')).stdout)
    expect(shown.pools.map(({ id }: { id: string }) => id)).toEqual(['one', 'two'])
    expect(text()).toBe(COMMENTED)
    await run('import', 'mcp.json', '--only', 'one')
    expect(text()).toContain('"one"')
    expect(text()).not.toContain('"two"')
    const none = await run('import', 'mcp.json', '--only', 'three')
    expect([none.code, none.stderr]).toEqual([2, expect.stringContaining('it has one, two')])
  })

  test('one that the bus cannot have keeps none of the others out', async () => {
    const { run, workspace, text } = world(COMMENTED)
    const odd = { type: 'http', url: 'unix:///tmp/server.sock' }
    workspace.write('mcp.json', {
      servers: { odd, ...servers, needy: { command: worker.command, env: { K: `\${NOT_SET}` } } },
    })
    const done = await run('import', 'mcp.json')
    expect(done).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/^left out odd: found .*; allowed: unix:PATH/m),
    })
    expect(done.stdout).toMatch(/added one\nadded two\nadded needy\nNext: mend the errors above, then stdio-bus start/)
    expect(text()).not.toContain('odd')
    workspace.write('odd.json', { servers: { odd } })
    expect(await run('import', 'odd.json')).toMatchObject({ code: 2, stderr: expect.stringContaining('left out odd') })
  })

  test('TOML of Codex, into a file that is made', async () => {
    const { run, workspace, text } = world()
    workspace.write('config.toml', `[mcp_servers.ctx]\ncommand = "${worker.command}"\nargs = ["x"]\n`)
    expect((await run('import', 'config.toml')).code).toBe(0)
    expect(text()).toContain('"protocol": "mcp"')
    expect((await run('check')).code).toBe(0)
  })

  test.each([
    ['no file named', [], /name a file of Claude/],
    ['a file that is not there', ['gone.json'], /there is no gone\.json/],
    ['a folder', ['.'], /is no file/],
    ['a file of something else', ['package.json'], /nothing to import.*mcpServers/],
    ['broken JSON', ['broken.json'], /is not JSON: line 2/],
    ['broken TOML', ['broken.toml'], /is not TOML: line 1/],
  ])('%s: exit 2, one sentence', async (_, args, said) => {
    const { run, workspace, text } = world(COMMENTED)
    workspace.write('package.json', { name: 'x' })
    workspace.write('broken.json', '{\n "mcpServers": { x }')
    workspace.write('broken.toml', '[mcp_servers')
    const done = await run('import', ...args)
    expect(done.stderr).toMatch(said)
    expect(done.stderr.trim().split('\n')).toHaveLength(1)
    expect([done.code, text()]).toEqual([2, COMMENTED])
  })
})
