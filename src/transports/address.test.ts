import { describe, expect, it } from 'vitest'
import { formatTcpAddress, isLoopbackIp } from '../host/address.ts'
import { checkSocketPath, MAX_SOCKET_PATH_BYTES, parseTcpAddress, resolveTcpAddress } from './address.ts'
import { AddressProblem, DoorError } from './door-error.ts'

describe('4.1.1 HOST:PORT', () => {
  it.each([
    ['127.0.0.1:7400', '127.0.0.1', 7400],
    ['localhost:0', 'localhost', 0],
    ['my-host.example:65535', 'my-host.example', 65535],
    ['[::1]:7400', '::1', 7400],
    ['[::]:1', '::', 1],
  ])('%s is read and written back', (text, host, port) => {
    expect(parseTcpAddress(text)).toEqual({ host, port })
    expect(formatTcpAddress({ host, port })).toBe(text)
  })

  it.each([
    '',
    '7400',
    ':7400',
    'localhost',
    'localhost:',
    'localhost:65536',
    'localhost:-1',
    'localhost:0x10',
    'localhost:7 ',
    'local host:7400',
    '::1:7400',
    '[::1]7400',
    '[localhost]:7400',
    '[127.0.0.1]:7400',
    '256.0.0.1:7400',
    'a..b:7400',
  ])('%j is a mistake of the user', (text) => {
    expect(() => parseTcpAddress(text)).toThrowError(AddressProblem)
    expect(() => parseTcpAddress(text)).toThrowError(expect.objectContaining({ code: 'address_invalid', exitCode: 2 }))
  })
})

describe('loopback', () => {
  it.each(['127.0.0.1', '127.255.1.2', '::1', '::ffff:127.0.0.1'])('%s is', (ip) => expect(isLoopbackIp(ip)).toBe(true))
  it.each(['0.0.0.0', '::', '128.0.0.1', '126.255.255.255', 'fe80::1', '::ffff:10.0.0.1', 'localhost', ''])(
    '%j is not',
    (ip) => expect(isLoopbackIp(ip)).toBe(false),
  )

  it('a name is judged by the addresses it resolves to, and one of them is handed on', async () => {
    const { host, port } = await resolveTcpAddress({ host: 'localhost', port: 7400 }, { allowUnauthenticated: false })
    expect(isLoopbackIp(host)).toBe(true)
    expect(port).toBe(7400)
  })

  it('an address that others can reach is refused with the reason and the ways out', async () => {
    const refused = resolveTcpAddress({ host: '0.0.0.0', port: 7400 }, { allowUnauthenticated: false })
    await expect(refused).rejects.toMatchObject({ code: 'not_loopback', exitCode: 2 })
    await expect(refused).rejects.toThrow(/other machines could connect.*127\.0\.0\.1.*--allow-unauthenticated/s)
  })

  it('unless the user says that nobody need be asked', async () => {
    const address = { host: '0.0.0.0', port: 7400 }
    await expect(resolveTcpAddress(address, { allowUnauthenticated: true })).resolves.toEqual(address)
  })

  it('a name that does not resolve is a failure of the world', async () => {
    const refused = resolveTcpAddress({ host: 'no-such-host.invalid', port: 1 }, { allowUnauthenticated: true })
    await expect(refused).rejects.toBeInstanceOf(DoorError)
    await expect(refused).rejects.toMatchObject({ code: 'name_unresolved', exitCode: 1 })
  })
})

describe('4.1.1 socket paths', () => {
  const ofBytes = (bytes: number) => `/${'s'.repeat(bytes - 1)}`

  it.each([MAX_SOCKET_PATH_BYTES - 1, MAX_SOCKET_PATH_BYTES])('%i bytes fit', (bytes) => {
    expect(() => checkSocketPath(ofBytes(bytes))).not.toThrow()
  })

  it('one byte more is a mistake of the user', () => {
    const tooLong = () => checkSocketPath(ofBytes(MAX_SOCKET_PATH_BYTES + 1))
    expect(tooLong).toThrowError(expect.objectContaining({ code: 'path_invalid', exitCode: 2 }))
  })

  it('bytes are counted, not characters', () => {
    expect(() => checkSocketPath(`/${'ä'.repeat(52)}`)).toThrowError(AddressProblem)
  })

  it.each(['', '/tmp/', 'a\0b'])('%j names no file', (path) => {
    expect(() => checkSocketPath(path)).toThrowError(AddressProblem)
  })
})
