import { describe, expect, it } from 'vitest'
import { isLoopback, parseAddress, suggestAddress } from './address.ts'

describe('4.1.1 HOST:PORT', () => {
  it.each([
    ['127.0.0.1:7400', '127.0.0.1', 7400],
    ['localhost:0', 'localhost', 0],
    ['my-host.example.com:65535', 'my-host.example.com', 65535],
    ['[::1]:80', '::1', 80],
    ['[fe80::1%eth0]:80', 'fe80::1%eth0', 80],
  ])('%s is taken', (text, host, port) => expect(parseAddress(text)).toEqual({ host, port }))

  it.each([
    '',
    '7400',
    ':7400',
    'localhost',
    'localhost:',
    'localhost:65536',
    'localhost:-1',
    'localhost:1e3',
    '::1:80',
  ])('%j is refused', (text) => expect(parseAddress(text)).toBeUndefined())

  it.each(['[::1]', '[::1:80', '[127.0.0.1]:80', '256.0.0.1:80', '1.2.3:80', 'a b:80', '-a:80', 'a..b:80', 'a:80:80'])(
    '%j is refused',
    (text) => expect(parseAddress(text)).toBeUndefined(),
  )

  it.each([
    ['7400', '127.0.0.1:7400'],
    [':7400', '127.0.0.1:7400'],
    ['tcp://localhost:80', 'localhost:80'],
    ['http://localhost:80/', 'localhost:80'],
    ['::1:80', '[::1]:80'],
    ['nonsense', undefined],
  ])('%s was meant as %s', (text, meant) => expect(suggestAddress(text)).toBe(meant))

  it.each([
    ['127.1.2.3:1', true],
    ['localhost:1', true],
    ['[::1]:1', true],
    ['0.0.0.0:1', false],
    ['example.com:1', false],
    ['127.evil.com:1', false],
    ['[::]:1', false],
  ])('whether only this machine reaches %s: %s', (text, expected) => {
    expect(isLoopback(parseAddress(text)!)).toBe(expected)
  })
})
