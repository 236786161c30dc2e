// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references to variables, as the file spells them
/** Contract 11.1: what a pool with a `url` may be, and what is told of one that may not. */
import { expect, it } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import { parseConfig } from './read.ts'

const SECRET = 's3cret-and-long'

function problemsOf(pool: object): string[] {
  const reading = parseConfig('bus.json', JSON.stringify({ pools: [{ id: 'far', ...pool }] }), {
    environment: { TOKEN: SECRET },
  })
  return reading.ok ? [] : reading.problems.map(({ path, found, allowed }) => `${path}: ${found}; ${allowed}`)
}

it.each([
  { url: 'https://mcp.example.com/mcp?key=1', headers: { Authorization: 'Bearer x' } },
  { url: 'http://[::1]:3001/' },
  { url: 'wss://rpc.example.com', ca: 'ca.pem', cert: 'a.pem', key: 'a.key' },
  { url: 'tcp://localhost:7400', pool: 'x', token: 'y' },
  { url: 'TLS://bus.example.com:7443' },
  { url: 'unix:bus.sock' },
  { url: 'unix:/run/bus.sock', sharing: 'isolated', instances: 0, connect_timeout_sec: 3 },
])('%j is fine', (pool) => {
  verifies('11.1-one-of')
  expect(problemsOf(pool)).toEqual([])
})

it.each<[object, string, string]>([
  [
    { url: 'tcp://h:1', command: 'cat' },
    'pools[0]',
    'exactly one of "command", "agent", "registry", "url" and "members"',
  ],
  [{ url: `https://anna:${SECRET}@h/mcp` }, 'pools[0].url', 'a user or a password'],
  [{ url: `https://${SECRET}@h/mcp` }, 'pools[0].url', 'a user or a password'],
  [{ url: `gopher://h/?${SECRET}` }, 'pools[0].url', 'the scheme "gopher"'],
  [{ url: `/${SECRET}` }, 'pools[0].url', 'a URL without a scheme'],
  [{ url: 'http://' }, 'pools[0].url', 'a URL that cannot be read'],
  [{ url: `http://h/#${SECRET}` }, 'pools[0].url', 'behind "#"'],
  [{ url: 'tcp://h' }, 'pools[0].url', 'tcp://HOST:PORT'],
  [{ url: 'tcp://h:0' }, 'pools[0].url', 'tcp://HOST:PORT'],
  [{ url: 'tls://h:1/path' }, 'pools[0].url', 'tls://HOST:PORT'],
  [{ url: 'unix:' }, 'pools[0].url', 'unix:PATH'],
  [{ url: 'unix://host/path' }, 'pools[0].url', 'unix:PATH'],
  [{ url: 'http://h', args: [] }, 'pools[0].args', 'only for programs'],
  [{ url: 'http://h', env: {} }, 'pools[0].env', 'only for programs'],
  [{ url: 'http://h', cwd: '/' }, 'pools[0].cwd', 'only for programs'],
  [{ url: 'http://h', pipes: 'fifo' }, 'pools[0].pipes', 'only for programs'],
  [{ url: 'http://h', pool: 'x' }, 'pools[0].pool', 'only with tcp://'],
  [{ url: 'tcp://h:1', headers: {} }, 'pools[0].headers', 'only with http(s)://'],
  [{ url: 'http://h', ca: 'x' }, 'pools[0].ca', 'only with https://'],
  [{ url: 'https://h', cert: 'x' }, 'pools[0].cert', 'only beside its "key"'],
  [{ url: 'https://h', key: 'x' }, 'pools[0].key', 'only beside its "cert"'],
  [{ url: 'http://h', protocol: 'acp' }, 'pools[0].protocol', '"mcp" for http(s)://'],
  [{ url: 'tcp://h:1', aio: { mode: 'oneshot' } }, 'pools[0].aio.mode', '"ndjson" for a "url"'],
  [
    { url: 'http://h', headers: { 'Mcp-Session-Id': SECRET } },
    'pools[0].headers.Mcp-Session-Id',
    'does not write itself',
  ],
  [{ url: 'http://h', headers: { Host: SECRET } }, 'pools[0].headers.Host', 'does not write itself'],
  [{ url: 'http://h', token: 'x', headers: { authorization: SECRET } }, 'pools[0].headers.authorization', 'not both'],
  [{ url: 'http://h', headers: { 'a b': SECRET } }, 'pools[0].headers["a b"]', 'the name of an HTTP header'],
  [{ url: 7 }, 'pools[0].url', 'a string'],
  [{ url: 'http://h', token: ['x'] }, 'pools[0].token', 'a string'],
  [{ url: `http://h/?k=\${NONE}` }, 'pools[0].url', '${NONE}, which is not set'],
  [{ url: 'tcp://h:1', token: `\${NONE}` }, 'pools[0].token', '${NONE}, which is not set'],
  [{ url: 'tcp://h:1', connect_timeout_sec: 0 }, 'pools[0].connect_timeout_sec', 'a whole number from 1'],
  [{ command: 'cat', token: SECRET }, 'pools[0].token', 'only beside "url"'],
  [{ command: 'cat', connect_timeout_sec: 3 }, 'pools[0].connect_timeout_sec', 'only beside "url"'],
])('%j is a mistake at %s', (pool, path, said) => {
  verifies('11.1-url-mistakes', '11.5-secrets')
  const problems = problemsOf(pool)
  expect(problems).toContainEqual(expect.stringContaining(said))
  expect(problems.some((problem) => problem.startsWith(`${path}: `))).toBe(true)
  expect(problems.join()).not.toContain(SECRET)
})

it('references are resolved in the URL, its headers and its token', () => {
  const url = 'https://h/mcp?k=${TOKEN}'
  const pool = { id: 'far', url, headers: { 'X-Key': 'a ${TOKEN}' } }
  const reading = parseConfig(
    '/etc/bus.json',
    JSON.stringify({ pools: [pool, { id: 'b', url: 'unix:b.sock', token: '${TOKEN}' }] }),
    {
      environment: { TOKEN: SECRET },
    },
  )
  if (!reading.ok) throw new Error(JSON.stringify(reading.problems))
  const { launches, bus } = reading.config
  expect(launches.get('far')).toMatchObject({ url: `https://h/mcp?k=${SECRET}`, headers: { 'X-Key': `a ${SECRET}` } })
  expect(launches.get('b')).toMatchObject({ url: 'unix:/etc/b.sock', token: SECRET })
  expect(bus.pools.map(({ protocol, isRemote }) => [protocol, isRemote])).toEqual([
    ['mcp', true],
    ['auto', true],
  ])
})
