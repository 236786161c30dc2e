import { expect, test } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import { proxyFor } from './proxy.ts'

const BOTH = { http_proxy: 'http://plain:1', HTTPS_PROXY: 'secure:2' }

test.each<[string, Record<string, string>, string | undefined]>([
  ['http://far.example/mcp', BOTH, 'http://plain:1/'],
  ['ws://far.example/', BOTH, 'http://plain:1/'],
  ['https://far.example/', BOTH, 'http://secure:2/'],
  ['wss://far.example/', BOTH, 'http://secure:2/'],
  ['https://far.example/', { https_proxy: 'http://a:1', HTTPS_PROXY: 'http://b:1' }, 'http://a:1/'],
  ['https://far.example/', {}, undefined],
  ['https://far.example/', { HTTPS_PROXY: ' ' }, undefined],
  ['https://far.example/', { HTTPS_PROXY: 'http://[' }, undefined],
  ['http://127.0.0.1:3000/', BOTH, undefined],
  ['http://127.8.8.8/', BOTH, undefined],
  ['http://localhost/', BOTH, undefined],
  ['http://[::1]:3000/', BOTH, undefined],
  ['http://far.example/', { ...BOTH, NO_PROXY: '*' }, undefined],
  ['http://far.example/', { ...BOTH, no_proxy: 'other, far.example' }, undefined],
  ['http://a.far.example/', { ...BOTH, no_proxy: 'far.example' }, undefined],
  ['http://a.far.example/', { ...BOTH, no_proxy: '.far.example' }, undefined],
  ['http://a.far.example/', { ...BOTH, no_proxy: '*.far.example' }, undefined],
  ['http://nofar.example/', { ...BOTH, no_proxy: 'far.example' }, 'http://plain:1/'],
  ['http://FAR.example:81/', { ...BOTH, no_proxy: 'far.EXAMPLE:81' }, undefined],
  ['http://far.example:82/', { ...BOTH, no_proxy: 'far.example:81' }, 'http://plain:1/'],
  ['http://[2001:db8::1]/', { ...BOTH, no_proxy: '2001:db8::1' }, undefined],
  ['http://[2001:db8::1]:81/', { ...BOTH, no_proxy: '[2001:db8::1]:81' }, undefined],
])('%s with %j goes through %s', (url, environment, proxy) => {
  verifies('11.5-proxies')
  expect(proxyFor(new URL(url), environment)?.href).toBe(proxy)
})
