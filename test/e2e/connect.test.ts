/** The shim between a host and the real daemon: what passes, how it ends, what it says (contract 6.10). */
import { describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { type Bus, startBus, testWorkspace } from '../support/bus.ts'
import { config, pool } from '../support/pools.ts'
import { residentBytes } from '../support/processes.ts'
import { sharedBus } from '../support/shared-bus.ts'
import { eventually, sleep } from '../support/waiting.ts'
import { type Shim, startShim } from './connect-harness.ts'

const MIB = 1024 * 1024

function shimTo(bus: Bus, ...args: string[]): Shim {
  return startShim(bus.workspace, '--unix', bus.workspace.path('bus.sock'), ...args)
}

describe('with a bus that runs', () => {
  const pools = [
    pool('echo'),
    pool('slow'),
    pool('silent'),
    pool('asks'),
    pool('obeys'),
    pool('big-answers'),
    pool('floods'),
  ]
  const bus = sharedBus({
    config: config(pools, { max_input_buffer: 6 * MIB, max_output_queue: MIB }, { default_pool: 'echo' }),
    doors: ['unix', 'tcp'],
  })

  test('6.10 an answer comes back byte for byte', async () => {
    verifies('6.10.1-bytes')
    const shim = shimTo(bus(), '--pool', 'obeys')
    const answer = ' {"result" : {"A":1.0e2, "s":"\\u0041\\/é"},\t"id":$ID ,"jsonrpc":"2.0"} '
    shim.host.send({ id: 'one', method: 'say', params: { write: `${answer}\n` } })
    expect((await shim.host.nextLine()).toString()).toBe(answer.replace('$ID', '"one"'))
    shim.host.endWriting()
    expect(await shim.ended()).toEqual({ code: 0, signal: null })
    expect(await shim.said).toBe('')
  })

  test('4.2.1 lines in any portions, with empty lines and a last line without newline', async () => {
    const shim = shimTo(bus())
    const text = '{"id":1,"method":"a"}\r\n\n  \n{"id":2,"meth'
    shim.host.sendRaw(text)
    expect((await shim.host.next()).id).toBe(1)
    shim.host.sendRaw('od":"b"}\n{"id":3,"method":"c"}')
    shim.host.endWriting()
    expect((await shim.host.take(2)).map(({ id }) => id)).toEqual([2, 3])
    expect((await shim.ended()).code).toBe(0)
  })

  test('4.1.1 TCP as well as a Unix socket', async () => {
    const address = bus()
      .addresses.find((each) => each.startsWith('tcp:'))!
      .slice('tcp:'.length)
    const shim = startShim(bus().workspace, '--tcp', address, '--pool', 'slow')
    expect((await shim.host.ask({ id: 1, method: 'x', params: { ms: 1 } })).result.echo).toEqual({ ms: 1 })
  })

  test('6.3 a pool that the bus does not have: exit 1, with the pools it has', async () => {
    verifies('6.10.3-no-pool')
    const shim = shimTo(bus(), '--pool', 'ecko')
    shim.host.endWriting()
    expect((await shim.ended()).code).toBe(1)
    expect(await shim.said).toMatch(/No pool has this name.*echo, slow/)
  })

  test('6.3 a pool that the bus does not have: its own words are the answer to the first request', async () => {
    verifies('6.10.3-first-request')
    const shim = shimTo(bus(), '--pool', 'ecko')
    expect(await shim.host.ask({ id: 7, method: 'initialize' })).toMatchObject({
      id: 7,
      error: { code: -32601, message: expect.stringMatching(/No pool.*echo, slow/), data: { reason: 'unknown_pool' } },
    })
    expect((await shim.ended()).code).toBe(1)
  })

  test('6.10 the end of input waits for what is owed, then exit 0', async () => {
    verifies('6.10.2-eof')
    const shim = shimTo(bus(), '--pool', 'slow')
    for (const [id, ms] of [300, 600].entries()) shim.host.send({ id, method: 'x', params: { ms } })
    shim.host.endWriting()
    expect((await shim.host.take(2)).map(({ id }) => id)).toEqual([0, 1])
    expect((await shim.ended()).code).toBe(0)
  })

  test('6.10 the end of input waits for nothing that was cancelled, nor for a subscription', async () => {
    verifies('6.10.2-not-for')
    const shim = shimTo(bus(), '--pool', 'silent')
    shim.host.send({ id: 1, method: 'tools/call' })
    shim.host.send({ method: 'notifications/cancelled', params: { requestId: 1 } })
    shim.host.send({ id: 'two', method: 'session/prompt' })
    shim.host.send({ method: '$/cancel_request', params: { requestId: 'two' } })
    shim.host.send({ id: 3, method: 'subscriptions/listen' })
    shim.host.endWriting()
    expect((await shim.ended(4_000)).code).toBe(0)
  })

  test('4.1.2 after the end of input a question is answered with an error, so that the answer can come', async () => {
    verifies('6.10.2-questions')
    const shim = shimTo(bus(), '--pool', 'asks')
    shim.host.send({ id: 1, method: 'do', sessionId: 's1', params: { ms: 100 } })
    shim.host.endWriting()
    const answer = await shim.host.next()
    expect(answer).toMatchObject({ id: 1, result: { said: null, error: { data: { reason: 'client_gone' } } } })
    expect((await shim.ended()).code).toBe(0)
  })

  test('4.1.2 a question that was open when the input ended is answered with an error too', async () => {
    verifies('6.10.2-questions')
    const shim = shimTo(bus(), '--pool', 'asks')
    shim.host.send({ id: 1, method: 'do', sessionId: 's1' })
    expect((await shim.host.next()).method).toBe('question')
    shim.host.endWriting()
    expect((await shim.host.next()).result.error.data.reason).toBe('client_gone')
    expect((await shim.ended()).code).toBe(0)
  })

  test('4.3 garbage: the error line of the bus, then exit 1', async () => {
    verifies('6.10.3-fault')
    const shim = shimTo(bus())
    shim.host.sendRaw('this is no JSON\n')
    expect(await shim.host.next()).toMatchObject({ id: null, error: { code: -32700, data: { reason: 'not_json' } } })
    expect((await shim.ended()).code).toBe(1)
    expect(await shim.said).toMatch(/not JSON/)
  })

  test('4.3 an envelope that cannot be routed ends it, once what was owed before has come', async () => {
    const shim = shimTo(bus(), '--pool', 'slow')
    shim.host.send({ id: 1, method: 'x', params: { ms: 300 } })
    shim.host.send({ id: 2 })
    const [refused, answer] = await shim.host.take(2)
    expect(refused).toMatchObject({ id: 2, error: { data: { reason: 'bad_envelope' } } })
    expect(answer).toMatchObject({ id: 1, result: { echo: { ms: 300 } } })
    expect((await shim.ended()).code).toBe(1)
    expect(await shim.said).toMatch(/cannot be routed/)
  })

  test('8.2 lines of 5 MiB pass in both directions', async () => {
    const shim = shimTo(bus(), '--pool', 'big-answers')
    shim.host.send({ id: 1, method: 'x', params: { bytes: 5 * MIB, pad: 'y'.repeat(5 * MIB) } })
    expect((await shim.host.nextLine(15_000)).length).toBe(5 * MIB)
    expect((await shim.host.ask({ id: 2, method: 'x', params: { bytes: 100 } })).id).toBe(2)
  })

  test('8.2 a line that is too long for the bus: its error, then exit 1', async () => {
    verifies('6.10.3-fault')
    const shim = shimTo(bus())
    shim.host.send({ id: 7, method: 'x', params: { pad: 'y'.repeat(7 * MIB) } })
    expect((await shim.host.next()).error.data.reason).toBe('message_too_large')
    expect((await shim.ended()).code).toBe(1)
    expect(await shim.said).toMatch(/max_input_buffer/)
  })

  test('8.3 a host that does not read costs no memory, and still gets everything', async () => {
    verifies('6.10.6-backpressure')
    const shim = shimTo(bus(), '--pool', 'big-answers')
    shim.host.pause()
    const count = 40
    for (let id = 0; id < count; id++) shim.host.send({ id, method: 'x', params: { bytes: MIB } })
    await sleep(700)
    expect(residentBytes(shim.child.pid!)).toBeLessThan(100 * MIB)
    shim.host.resume()
    expect((await shim.host.take(count, 10_000)).map(({ id }) => id)).toEqual([...Array(count).keys()])
  })

  test('3.3 a host that goes altogether takes the shim with it', async () => {
    verifies('6.10.2-host-gone')
    const shim = shimTo(bus(), '--pool', 'slow')
    shim.host.send({ id: 1, method: 'x', params: { ms: 200 } })
    await sleep(50)
    shim.child.stdout!.destroy()
    shim.host.endWriting()
    expect((await shim.ended()).code).not.toBeNull()
  })
})

describe('which bus', () => {
  test('8.6 found from HOME alone: the only one, or the one with a configuration', async () => {
    verifies('6.10.5-finds')
    const workspace = testWorkspace()
    const first = await startBus({ config: config(pool('echo', { args: ['first'] })), workspace })
    const alone = startShim(workspace)
    expect((await alone.host.ask({ id: 1, method: 'x' })).result.worker).toBe('first')

    const other = workspace.write('other.json', config(pool('echo', { args: ['second'] })))
    const args = ['--config', other, '--control', workspace.path('second.sock'), '--unix', workspace.path('2.sock')]
    const second = await startBus({ doors: [], args, workspace })
    const named = startShim(workspace, '--config', other)
    expect((await named.host.ask({ id: 1, method: 'x' })).result.worker).toBe('second')

    const torn = startShim(workspace)
    expect((await torn.ended()).code).toBe(2)
    expect(await torn.said).toMatch(/several buses run.*--unix/)
    await Promise.all([first.stop(), second.stop()])
  })

  test.each([
    ['nothing runs for this user', []],
    ['nothing is at the socket', ['--unix', 'none.sock']],
    ['nobody listens at the port', ['--tcp', '127.0.0.1:1']],
  ])('6.10 %s: exit 1, with how to start one', async (_case, args) => {
    verifies('6.10.3-no-bus')
    const shim = startShim(testWorkspace(), ...args)
    shim.host.endWriting()
    expect((await shim.ended()).code).toBe(1)
    expect(await shim.said).toMatch(/stdio-bus serve --unix PATH.*--autostart/)
  })

  test.each([
    ['nothing is at the socket', ['--unix', 'none.sock']],
    ['nobody listens at the port', ['--tcp', '127.0.0.1:1']],
  ])('6.10 %s: the first request of the host is answered with how to start one, then exit 1', async (_case, args) => {
    verifies('6.10.3-first-request')
    const shim = startShim(testWorkspace(), ...args)
    shim.host.sendRaw('{"method":"hello"}\n{"id":"a\\u0041","meth')
    shim.host.sendRaw('od":"initialize"}\n')
    const line = (await shim.host.nextLine()).toString()
    expect(line).toContain('"id":"a\\u0041"')
    expect(JSON.parse(line).error).toEqual({
      code: -32603,
      message: expect.stringMatching(/no bus answers.*stdio-bus serve --unix PATH.*--autostart/),
      data: { reason: 'bus_unavailable', retryable: true },
    })
    expect((await shim.ended()).code).toBe(1)
    expect(await shim.said).toMatch(/stdio-bus serve --unix PATH.*--autostart/)
  })

  test('6.10 no bus and a last request without newline: answered, exit 1', async () => {
    const shim = startShim(testWorkspace())
    shim.host.sendRaw('{"id":1,"method":"a"}\n{"id":2,"method":"b"}')
    shim.host.endWriting()
    expect(await shim.host.next()).toMatchObject({ id: 1, error: { data: { reason: 'bus_unavailable' } } })
    expect((await shim.ended()).code).toBe(1)
  })

  test('6.10 no bus and a host that says nothing: exit 1 after a moment', async () => {
    const shim = startShim(testWorkspace())
    expect((await shim.ended()).code).toBe(1)
  })

  test.each([
    [['--unix', 'a', '--tcp', '127.0.0.1:1'], /leave all but one out/],
    [['--tcp', '127.0.0.1:1', '--tls', '127.0.0.1:1'], /leave all but one out/],
    [['--tcp', '127.0.0.1:1', '--ca', 'a'], /--ca goes with --tls/],
    [['--tls', 'nowhere'], /--tls: .*HOST:PORT/],
    [['--tls', '127.0.0.1:1', '--autostart', '--config', 'a'], /leave --tls out/],
    [['--autostart'], /--autostart needs --config/],
    [['--tcp', 'nowhere'], /HOST:PORT/],
    [['--poll', 'x'], /--pool/],
  ])('8.4 %j is a mistake of the user: exit 2', async (args, sentence) => {
    verifies('6.10.3-usage')
    const shim = startShim(testWorkspace(), ...args)
    expect((await shim.ended()).code).toBe(2)
    expect(await shim.said).toMatch(sentence)
  })
})

test('6.10 memory and start stay small', async () => {
  const bus = await startBus({ config: config(pool('echo')) })
  const shim = shimTo(bus)
  for (let id = 0; id < 2_000; id++) shim.host.send({ id, method: 'x', params: { text: 'x'.repeat(200) } })
  await shim.host.take(2_000, 10_000)
  const bytes = await eventually('the memory of the shim', () => residentBytes(shim.child.pid!))
  expect(bytes).toBeLessThan(70 * MIB)
})
