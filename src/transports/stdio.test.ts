import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Compiled, compile } from '../../test/fixtures/process/compile.ts'
import type { ConnectionInfo } from './listener.ts'
import { openStdio } from './stdio.ts'

const FIXTURE = fileURLToPath(new URL('../../test/fixtures/process/echoes-stdio-door.mjs', import.meta.url))

let compiled: Compiled
beforeAll(async () => {
  compiled = await compile('transports/stdio.ts')
})
afterAll(() => compiled.remove())

describe('the stdio door', () => {
  it('4.1.1 has exactly one client, who is there at once', async () => {
    const infos: ConnectionInfo[] = []
    const listener = openStdio((_socket, info) => infos.push(info), {
      stdin: new PassThrough(),
      stdout: new PassThrough(),
    })
    expect(infos).toEqual([{ door: 'stdio', isLocal: true, listener: 'stdio', peer: '' }])
    expect(listener.address).toBe('stdio')
    await listener.close()
  })

  it('4.1.2 carries every byte back after the end of input, without waiting for a slow reader', async () => {
    const program = spawn(process.execPath, [FIXTURE, compiled.folder])
    const sent = Buffer.alloc(3_000_000, 'line of a client\n')
    program.stdin.end(sent)
    const [said] = await once(program.stderr, 'data')
    expect(String(said)).toMatch(/^pending [1-9]/)
    const [received, [code]] = await Promise.all([buffer(program.stdout), once(program, 'exit')])
    expect(received.equals(sent)).toBe(true)
    expect(code).toBe(0)
  })

  it('a reader that goes is an error of the connection, not a crash', async () => {
    const program = spawn(process.execPath, [FIXTURE, compiled.folder], { stdio: ['pipe', 'pipe', 'ignore'] })
    program.stdout.destroy()
    program.stdin.end(Buffer.alloc(1_000_000))
    const [code] = await once(program, 'exit')
    expect(code).toBe(7)
  })

  it('pauses the input when its reader pauses', async () => {
    const stdin = new PassThrough({ highWaterMark: 1 })
    openStdio((socket) => socket.once('data', () => socket.pause()), { stdin, stdout: new PassThrough() })
    for (let n = 0; n < 100; n += 1) stdin.write(Buffer.alloc(16_384))
    for (let turn = 0; turn < 200; turn += 1) await new Promise(setImmediate)
    expect(stdin.isPaused()).toBe(true)
    expect(stdin.writableLength).toBeGreaterThan(1_000_000)
  })
})
