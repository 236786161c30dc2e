/**
 * Whom `stdio-bus chat` asks when nobody is named: the endpoint that is exported, the bus that runs, else the demo; and
 * how it ends when they cannot be asked.
 */
import { describe, expect, onTestFinished, test } from 'vitest'
import { says } from '../../src/agents/demo-endpoint/reply.ts'
import { startEndpoint } from '../../src/agents/demo-endpoint/server.ts'
import { runBus, startBus, testWorkspace } from '../support/bus.ts'

const ECHO = { id: 'echo', agent: 'echo' }

async function endpointSaying(text: string): Promise<Record<string, string>> {
  const endpoint = await startEndpoint({ script: () => says(text), models: [{ id: 'm' }], memory: 1 })
  onTestFinished(() => endpoint.close())
  return { OPENAI_BASE_URL: endpoint.url, OPENAI_MODEL: 'm' }
}

describe('nobody is named', () => {
  test('the endpoint of the environment answers', async () => {
    const env = await endpointSaying('I am the model')
    const done = await runBus(['chat', 'hi'], { workspace: testWorkspace(), env })
    expect(done).toMatchObject({ code: 0, stdout: 'I am the model\n', stderr: '' })
  })

  test('the bus that runs answers, as for status and connect', async () => {
    const bus = await startBus({ config: { pools: [ECHO] }, defaultControl: true })
    expect(await bus.run(['chat', 'hi'])).toMatchObject({ code: 0, stdout: 'You said: hi\n' })
    expect(await bus.run(['chat', 'hi', '--pool', 'echo'])).toMatchObject({ code: 0, stdout: 'You said: hi\n' })
  })

  test('else it is the demo, whose advice works when it is followed', async () => {
    const workspace = testWorkspace()
    const demo = await runBus(['chat', 'hi'], { workspace })
    expect(demo.stdout).toMatch(/built-in demo.*OPENAI_BASE_URL and OPENAI_MODEL/)
    const env = await endpointSaying('no demo')
    expect(await runBus(['chat', 'hi'], { workspace, env })).toMatchObject({ code: 0, stdout: 'no demo\n' })
  })
})

describe('what cannot be asked', () => {
  test('an endpoint out of reach: exit 1, said on stderr, nothing on stdout', async () => {
    const env = { OPENAI_BASE_URL: 'http://127.0.0.1:9/v1', OPENAI_MODEL: 'm', OPENAI_MAX_RETRIES: '0' }
    const done = await runBus(['chat', 'hi'], { workspace: testWorkspace(), env })
    expect(done.code).toBe(1)
    expect(done.stderr).toMatch(/^stdio-bus: Network error connecting to http:\/\/127\.0\.0\.1:9\/v1/)
    expect(done.stdout).toBe('')
  })

  test('a variable that is no address: exit 2, and the variable is named', async () => {
    const done = await runBus(['chat', 'hi'], { workspace: testWorkspace(), env: { OPENAI_BASE_URL: 'nowhere' } })
    expect(done.code).toBe(2)
    expect(done.stderr).toMatch(/^stdio-bus: OPENAI_BASE_URL is not a URL; write it like \S+\n$/)
  })

  test.each([
    ['a pool that is not there', ['--pool', 'coder'], 'the bus has no pool "coder"; ask one of them with --pool: a, b'],
    ['none of several pools', [], 'several pools and none was named; ask one of them with --pool: a, b'],
  ])('%s: exit 2 with those that are', async (_, args, said) => {
    const pools = ['a', 'b'].map((id) => ({ id, agent: 'echo' }))
    const bus = await startBus({ config: { pools }, defaultControl: true })
    const done = await bus.run(['chat', 'hi', ...args])
    expect([done.code, done.stdout]).toEqual([2, ''])
    expect(done.stderr).toContain(said)
  })

  test('one of two buses: exit 2 with where they are', async () => {
    const first = await startBus({ config: { pools: [ECHO] }, defaultControl: true })
    const path = first.workspace.path('other.sock')
    const options = { config: { pools: [ECHO] }, doors: [], args: ['--unix', path], defaultControl: true }
    await startBus({ ...options, workspace: first.workspace })
    const done = await first.run(['chat', 'hi'])
    expect(done.code).toBe(2)
    expect(done.stderr).toContain('several buses run')
    expect(done.stderr).toContain(path)
    expect(await first.run(['chat', 'hi', '--unix', path])).toMatchObject({ code: 0, stdout: 'You said: hi\n' })
  })
})
