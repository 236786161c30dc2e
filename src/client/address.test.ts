import { expect, test } from 'vitest'
import { dial, parseAnnounced, parseTcp, showAddress } from './address.ts'
import { BusUnavailable, isRetryable, reasonOf } from './errors.ts'

test.each([
  ['127.0.0.1:7400', { host: '127.0.0.1', port: 7400 }],
  ['localhost:1', { host: 'localhost', port: 1 }],
  ['[::1]:65535', { host: '::1', port: 65_535 }],
])('%s is read and shown again', (text, tcp) => {
  expect(parseTcp(text)).toEqual(tcp)
  expect(showAddress({ tcp })).toBe(text)
})

test.each(['', '7400', 'host:', 'host:0', 'host:65536', '::1:7400', 'a b:1'])('%j is no address', (text) => {
  expect(() => parseTcp(text)).toThrow(/HOST:PORT/)
})

test('what a bus announces', () => {
  expect(parseAnnounced('unix:/run/a.sock')).toEqual({ unix: '/run/a.sock' })
  expect(parseAnnounced('tcp:[::1]:7400')).toEqual({ tcp: { host: '::1', port: 7400 } })
  expect(parseAnnounced('stdio')).toBeUndefined()
})

test('nobody there is said with the address and the reason', async () => {
  const failure = await dial({ unix: '/nonexistent/bus.sock' }).catch((error: unknown) => error)
  expect(failure).toBeInstanceOf(BusUnavailable)
  expect((failure as Error).message).toBe('no bus answers at /nonexistent/bus.sock: there is no such socket')
})

test('the reason of a request that failed is read from the error of any SDK', () => {
  const failed = Object.assign(new Error('failed'), { code: -32603, data: { reason: 'bus_gone', retryable: true } })
  expect([reasonOf(failed), isRetryable(failed)]).toEqual(['bus_gone', true])
  for (const other of [undefined, new Error('x'), { data: 'text' }, { data: { reason: 1 } }]) {
    expect([reasonOf(other), isRetryable(other)]).toEqual([undefined, false])
  }
})
