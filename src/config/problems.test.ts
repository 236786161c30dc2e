// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the file itself spells its references so
import { describe, expect, it } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import type { Problem } from './problem.ts'
import { parseConfig } from './read.ts'

const OPTIONS = { environment: { HOME: '/home/ada', TOKEN: 's3cret' }, cwd: '/srv/bus' }
const POOL = '"pools": [{ "id": "a", "command": "cat" }]'

function problemsOf(text: string): readonly Problem[] {
  const reading = parseConfig('bus.json', text, OPTIONS)
  return reading.ok ? [] : reading.problems
}

/** Each row: the file line by line, then the path, line and column of the problem and what its words must say. */
const WRONG: [title: string, lines: string[], place: string, words: RegExp][] = [
  ['an unknown key', ['{', '  "polls": [],', `  ${POOL} }`], '2:3 polls', /unknown key "polls".*did you mean "pools"/],
  [
    'camel case',
    [`{ ${POOL},`, '"limits": { "maxRestarts": 1 } }'],
    '2:13 limits.maxRestarts',
    /did you mean "max_restarts"/,
  ],
  ['a key of another program', [`{ ${POOL},`, '"transport": {} }'], '2:1 transport', /did you mean "listen"/],
  ['the servers of VS Code', [`{ ${POOL},`, '"servers": {} }'], '2:1 servers', /run "stdio-bus import FILE"/],
  ['the servers of opencode', [`{ ${POOL},`, '"mcp": {} }'], '2:1 mcp', /run "stdio-bus import FILE"/],
  ['a key one level too high', [`{ ${POOL},`, '"sharing": "lease" }'], '2:1 sharing', /belongs into pools\[\]/],
  [
    'a limit outside limits',
    ['{ "pools": [{ "id": "a", "command": "cat",', '"max_restarts": 1 }] }'],
    '2:1 pools[0].max_restarts',
    /put it into "limits"/,
  ],
  [
    'a bus limit in a pool',
    ['{ "pools": [{ "id": "a", "command": "cat", "limits": {', '"max_clients": 1 } }] }'],
    '2:1 pools[0].limits.max_clients',
    /whole bus/,
  ],
  [
    'kept sessions of a lease',
    ['{ "pools": [{ "id": "a", "command": "cat", "sharing": "lease",', '"sessions": { "keep_sec": 5 } }] }'],
    '2:1 pools[0].sessions',
    /"shared" or "isolated"/,
  ],
  [
    'kept sessions of another protocol',
    ['{ "pools": [{ "id": "a", "command": "cat", "protocol": "mcp",', '"sessions": { "keep_sec": 5 } }] }'],
    '2:1 pools[0].sessions',
    /"acp" or "auto", not "mcp"/,
  ],
  [
    'questions that wait longer than sessions',
    ['{ "pools": [{ "id": "a", "command": "cat", "sessions": { "keep_sec": 5,', '"question_sec": 6 } }] }'],
    '2:17 pools[0].sessions.question_sec',
    /at most keep_sec, which is 5/,
  ],
  [
    'the store in both spellings',
    [`{ ${POOL}, "store": {},`, '"aio": { "store": {} } }'],
    '2:10 aio.store',
    /one of "store" and "aio.store"/,
  ],
  ['no pools', ['{ }'], '1:1 pools', /nothing.*a list.*add "pools"/],
  ['an empty list of pools', ['{', '"pools": [] }'], '2:10 pools', /at least 1 pool, unless there is a "cluster"/],
  ['pools that is no list', ['{', '"pools": {} }'], '2:10 pools', /an object.*a list/],
  ['a file that is no object', ['[]'], '1:1 ', /a list.*an object/],
  ['a pool without id', ['{ "pools": [', '{ "command": "cat" }] }'], '2:1 pools[0].id', /nothing.*add "id"/],
  ['an empty id', ['{ "pools": [', '{ "id": "", "command": "cat" }] }'], '2:9 pools[0].id', /1 to 128/],
  [
    'a duplicate id',
    ['{ "pools": [{ "id": "a", "command": "cat" },', '{ "id": "a", "command": "cat" }] }'],
    '2:9 pools[1].id',
    /"a" a second time/,
  ],
  ['the reserved name', ['{ "pools": [', '{ "id": "bus", "command": "cat" }] }'], '2:9 pools[0].id', /bus::/],
  [
    'an agent named like a pool',
    [`{ ${POOL}, "agents": [`, '{ "name": "a", "endpoint": "http://x" }] }'],
    '2:11 agents[0].name',
    /second time/,
  ],
  ['no program', ['{ "pools": [', '{ "id": "a" }] }'], '2:1 pools[0]', /none of them.*exactly one/],
  [
    'two programs',
    ['{ "pools": [', '{ "id": "a", "command": "cat", "agent": "echo" }] }'],
    '2:1 pools[0]',
    /"command" and "agent".*exactly one/,
  ],
  [
    'an unknown agent',
    ['{ "pools": [{ "id": "a",', '"agent": "opena" }] }'],
    '2:10 pools[0].agent',
    /did you mean "openai"/,
  ],
  [
    'a word that is none of the allowed',
    ['{ "pools": [{ "id": "a", "command": "cat",', '"sharing": "leased" }] }'],
    '2:12 pools[0].sharing',
    /"shared", "isolated" or "lease".*did you mean "lease"/,
  ],
  [
    'a number in quotes',
    ['{ "pools": [{ "id": "a", "command": "cat",', '"instances": "2" }] }'],
    '2:14 pools[0].instances',
    /whole number from 0 to 1000.*without the quotes/,
  ],
  [
    'no instances',
    ['{ "pools": [{ "id": "a", "command": "cat",', '"instances": 0 }] }'],
    '2:14 pools[0].instances',
    /at least 1, unless sharing is "isolated"/,
  ],
  [
    'fewer than instances',
    ['{ "pools": [{ "id": "a", "command": "cat", "instances": 4,', '"max_instances": 3 }] }'],
    '2:18 pools[0].max_instances',
    /at least instances, which is 4/,
  ],
  [
    'args that are no list',
    ['{ "pools": [{ "id": "a", "command": "cat",', '"args": "--key hunter2" }] }'],
    '2:9 pools[0].args',
    /a string.*a list/,
  ],
  [
    'distribution without registry',
    ['{ "pools": [{ "id": "a", "command": "cat",', '"distribution": "npx" }] }'],
    '2:1 pools[0].distribution',
    /only beside "registry"/,
  ],
  [
    'a fallback that does not exist',
    ['{ "pools": [{ "id": "a", "command": "cat",', '"fallback": "othr" }, { "id": "other", "command": "cat" }] }'],
    '2:13 pools[0].fallback',
    /"othr".*"a" or "other".*did you mean "other"/,
  ],
  [
    'a fallback that is the pool itself',
    ['{ "pools": [{ "id": "a", "command": "cat",', '"fallback": "a" }] }'],
    '2:13 pools[0].fallback',
    /the pool itself.*another pool/,
  ],
  [
    'sessions balanced where a client has one worker',
    ['{ "pools": [{ "id": "a", "command": "cat", "sharing": "isolated",', '"balance": "session" }] }'],
    '2:1 pools[0].balance',
    /only with sharing "shared"/,
  ],
  [
    'sampling of an agent that is no MCP server',
    ['{ "pools": [{ "id": "a", "command": "cat", "aio": {', '"sampling": { "tool": "x" } } }] }'],
    '2:1 pools[0].aio.sampling',
    /aio\.type "mcp"/,
  ],
  [
    'a mode of an MCP server',
    ['{ "pools": [{ "id": "a", "command": "cat", "aio": { "type": "mcp",', '"mode": "oneshot" } }] }'],
    '2:1 pools[0].aio.mode',
    /aio\.type "stdio"/,
  ],
  [
    'an AIO name that cannot be called',
    ['{ "pools": [', '{ "id": "a b", "command": "cat", "aio": {} }] }'],
    '2:9 pools[0].id',
    /letters, digits/,
  ],
  [
    'an unset variable',
    ['{ "pools": [{ "id": "a", "command": "cat", "env": {', '"K": "${MISSING}" } }] }'],
    '2:6 pools[0].env.K',
    /\$\{MISSING\}, which is not set.*set MISSING/,
  ],
  [
    'half a reference',
    ['{ "pools": [{ "id": "a", "command": "cat", "env": {', '"K": "${TOKEN" } }] }'],
    '2:6 pools[0].env.K',
    /\$\$\{ for a literal/,
  ],
  [
    'a variable that is no text',
    ['{ "pools": [{ "id": "a", "command": "cat", "env": {', '"K": 5 } }] }'],
    '2:6 pools[0].env.K',
    /a number.*a string/,
  ],
  [
    'a variable name with =',
    ['{ "pools": [{ "id": "a", "command": "cat", "env": {', '"K=": "5" } }] }'],
    '2:1 pools[0].env["K="]',
    /without "="/,
  ],
  [
    'an unset variable in a header',
    [`{ ${POOL}, "aio": { "otlp": { "endpoint": "http://x", "headers": {`, '"K": "${MISSING}" } } } }'],
    '2:6 aio.otlp.headers.K',
    /MISSING/,
  ],
  ['a default pool that does not exist', [`{ ${POOL},`, '"default_pool": "A1" }'], '2:17 default_pool', /"A1".*"a"/],
  [
    'a door for a pool that does not exist',
    [`{ ${POOL}, "listen": { "unix": { "path": "/s",`, '"pool": "b" } } }'],
    '2:9 listen.unix.pool',
    /"b".*"a"/,
  ],
  [
    'a socket path of 104 bytes',
    [`{ ${POOL}, "listen": {`, `"unix": "/${'x'.repeat(103)}" } }`],
    '2:9 listen.unix',
    /104 bytes.*at most 103/,
  ],
  ['a control path of 104 bytes', [`{ ${POOL},`, `"control": "/${'é'.repeat(51)}x" }`], '2:12 control', /104 bytes/],
  [
    'a port alone',
    [`{ ${POOL}, "listen": {`, '"tcp": "7400" } }'],
    '2:8 listen.tcp',
    /did you mean "127\.0\.0\.1:7400"/,
  ],
  [
    'an address in a list',
    [`{ ${POOL}, "listen": { "tcp": ["localhost:0",`, '"localhost:65536"] } }'],
    '2:1 listen.tcp[1]',
    /0 to 65535/,
  ],
  [
    'a door of a wrong kind',
    [`{ ${POOL}, "listen": {`, '"tcp": 7400 } }'],
    '2:8 listen.tcp',
    /7400.*a string, an object or a list/,
  ],
  [
    'an unknown key of a door',
    [`{ ${POOL}, "listen": { "unix": [{ "path": "/s",`, '"pol": "a" }] } }'],
    '2:1 listen.unix[0].pol',
    /did you mean "pool"/,
  ],
  [
    'a negative limit',
    [`{ ${POOL}, "limits": {`, '"max_restarts": -1 } }'],
    '2:17 limits.max_restarts',
    /-1.*whole number from 0/,
  ],
  [
    'half a second',
    [`{ ${POOL}, "limits": {`, '"drain_timeout_sec": 0.5 } }'],
    '2:22 limits.drain_timeout_sec',
    /0\.5.*whole number/,
  ],
  [
    'an input buffer of nothing',
    [`{ ${POOL}, "limits": {`, '"max_input_buffer": 0 } }'],
    '2:21 limits.max_input_buffer',
    /from 1 to/,
  ],
  ['a duplicate key', [`{ ${POOL}, "limits": {},`, '"limits": {} }'], '2:1 limits', /"limits" a second time/],
  [
    'an endpoint that is no URL',
    [`{ ${POOL}, "agents": [{ "name": "x",`, '"endpoint": "host/rpc" }] }'],
    '2:13 agents[0].endpoint',
    /https:\/\//,
  ],
  [
    'an index of an unknown kind',
    [`{ ${POOL}, "registry": {`, '"index": "ftp://x" } }'],
    '2:10 registry.index',
    /https:\/\//,
  ],
  [
    'rights of nobody without their pools',
    [`{ ${POOL}, "access": {`, '"anonymous": { "role": "admin" } } }'],
    '2:14 access.anonymous.pools',
    /nothing.*a list of at most 256.*add "pools"/,
  ],
  [
    'rights of nobody in one word',
    [`{ ${POOL}, "access": {`, '"anonymous": true } }'],
    '2:14 access.anonymous',
    /true.*an object or false/,
  ],
  [
    'a rate without its period',
    [`{ ${POOL}, "access": { "anonymous": { "pools": [],`, '"rate": "50" } } }'],
    '2:9 access.anonymous.rate',
    /"50\/s"/,
  ],
  [
    'a principal that no file has',
    [`{ ${POOL}, "access": {`, '"certificates": [{ "subject": "CN=x", "as": "dev" }] } }'],
    '2:1 access.certificates',
    /only beside access\.file/,
  ],
  [
    'a certificate of no kind',
    [`{ ${POOL}, "access": { "file": "f", "certificates": [{`, '"subject": "alice", "as": "dev" }] } }'],
    '2:12 access.certificates[0].subject',
    /"alice".*CN=, DNS:, URI: or email:/,
  ],
  [
    'signed tokens that may be for anybody',
    [
      `{ ${POOL}, "access": { "file": "f",`,
      '"oauth": { "issuer": "https://h", "map": [{ "claim": "a", "equals": "b", "as": "c" }] } } }',
    ],
    '2:10 access.oauth',
    /neither "audience" nor "public_url".*add "public_url"/,
  ],
  [
    'keys over a network in plain',
    [
      `{ ${POOL}, "access": { "file": "f", "oauth": { "audience": "x", "issuer": "http://id.example.com",`,
      '"jwks_url": "http://10.0.0.1/keys", "map": [{ "claim": "a", "equals": "b", "as": "c" }] } } }',
    ],
    '2:13 access.oauth.jwks_url',
    /"10\.0\.0\.1".*https:\/\//,
  ],
  [
    'an address of the bus that nobody reads',
    [`{ ${POOL},`, '"public_url": "https://bus.example.com" }'],
    '2:1 public_url',
    /only beside access\.oauth or listen\.http/,
  ],
  [
    'a web door that cannot be found by whoever it refuses',
    [
      `{ ${POOL}, "listen": { "http": "127.0.0.1:0" }, "access": { "file": "f",`,
      '"oauth": { "audience": "x", "issuer": "https://h", "map": [{ "claim": "a", "equals": "b", "as": "c" }] } } }',
    ],
    '2:10 access.oauth',
    /a web door without "public_url"/,
  ],
  [
    'a web door with half a certificate',
    [`{ ${POOL}, "listen": { "http": { "address": "127.0.0.1:0",`, '"cert": "c" } } }'],
    '2:1 listen.http.cert',
    /only beside "key"/,
  ],
  [
    'a web door that is none',
    [`{ ${POOL}, "listen": {`, '"http": "8080" } }'],
    '2:9 listen.http',
    /did you mean "127\.0\.0\.1:8080"/,
  ],
  [
    'an unset variable of nobody',
    [`{ ${POOL}, "access": { "anonymous": { "pools": [], "env": { "a": {`, '"K": "${MISSING}" } } } } }'],
    '2:6 access.anonymous.env.a.K',
    /MISSING/,
  ],
  [
    'a door with TLS that has no certificate',
    [`{ ${POOL}, "listen": {`, '"tls": { "address": "127.0.0.1:0", "key": "k" } } }'],
    '2:8 listen.tls.cert',
    /add "cert"/,
  ],
  [
    'a door with TLS in one word',
    [`{ ${POOL}, "listen": {`, '"tls": "127.0.0.1:0" } }'],
    '2:8 listen.tls',
    /an object or a list/,
  ],
  [
    'client certificates that nobody vouches for',
    [
      `{ ${POOL}, "listen": { "tls": { "address": "127.0.0.1:0", "cert": "c", "key": "k",`,
      '"client_cert": "optional" } } }',
    ],
    '2:1 listen.tls.client_cert',
    /only beside "client_ca"/,
  ],
  [
    'an address with TLS that is none',
    [`{ ${POOL}, "listen": { "tls": [{ "cert": "c", "key": "k",`, '"address": "7443" }] } }'],
    '2:12 listen.tls[0].address',
    /did you mean "127\.0\.0\.1:7443"/,
  ],
  ['a missing comma', ['{', `${POOL}`, '"limits": {} }'], '3:1 ', /no comma/],
  ['single quotes', ["{ 'pools': [] }"], '1:3 ', /a bare word.*double quotes/],
  ['text that does not end', ['{', '"pools": "', '}'], '2:10 ', /does not end/],
  ['text after the end', [`{ ${POOL} }`, '}'], '2:1 ', /after the end/],
]

describe('8.4 a problem has its place, what was found and what is allowed', () => {
  it.each(WRONG)('%s', (_title, lines, place, words) => {
    verifies('12.1-mistakes', '12.9-spelling')
    const problems = problemsOf(lines.join('\n'))
    const shown = problems.map(({ line, column, path }) => `${line}:${column} ${path}`)
    expect(shown).toContain(place)
    const problem = problems[shown.indexOf(place)]!
    expect(`${problem.found}; ${problem.allowed}; ${problem.suggestion}`).toMatch(words)
    expect(problem).toMatchObject({ file: 'bus.json', severity: 'error' })
  })

  it('all problems come at once, in the order of the file', () => {
    const problems = problemsOf(`{
      "default_pool": "zz",
      "pools": [
        { "id": "a", "command": "cat", "sharing": "no", "env": { "K": "\${MISSING}" } },
        { "id": "a", "instances": -1 } ]
      "unknown": 1, "limits": { "max_restarts": "x" } }`)
    expect(problems.map(({ line, path }) => `${line} ${path}`)).toEqual([
      '2 default_pool',
      '4 pools[0].sharing',
      '4 pools[0].env.K',
      '5 pools[1]',
      '5 pools[1].id',
      '5 pools[1].instances',
      '6 ',
      '6 unknown',
      '6 limits.max_restarts',
    ])
  })

  it('a way of fallbacks that comes back is told at each pool of it, and nowhere else', () => {
    const ways = { a: 'b', b: 'c', c: 'a', d: 'a', e: 'f', f: undefined }
    const pools = Object.entries(ways).map(([id, fallback]) => ({ id, command: 'cat', fallback }))
    const problems = problemsOf(JSON.stringify({ pools }))
    expect(problems.map(({ path }) => path)).toEqual([0, 1, 2].map((index) => `pools[${index}].fallback`))
    expect(problems[0]?.found).toBe('a way that comes back: "a" to "b" to "c" to "a"')
  })

  it('one mistake is told once', () => {
    const problems = problemsOf('{ "pools": [{ "id": "a", "comand": "cat" }] }')
    expect(problems.map(({ path, suggestion }) => `${path}: ${suggestion}`)).toEqual([
      'pools[0].comand: did you mean "command"?',
    ])
  })

  it('4.1.1 a socket path of 103 bytes fits', () => {
    expect(problemsOf(`{ ${POOL}, "listen": { "unix": "/${'x'.repeat(102)}" } }`)).toEqual([])
  })

  it('no secret is shown, wherever the mistake is', () => {
    const text = `{ "pools": [{ "id": "a", "command": "cat", "args": "--key hunter2", "env": { "A": 12345, "B": "hunter2\${" } },
      { "id": "b", "command": "cat", "env": "KEY=hunter2" }],
      "agents": [{ "name": "x", "endpoint": "ftp://user:hunter2@host", "headers": { "authorization": "hunter2\\n" } }] }`
    const shown = JSON.stringify(problemsOf(text))
    expect(problemsOf(text)).toHaveLength(6)
    expect(shown).not.toMatch(/hunter2|12345/)
  })

  it('a document that would exhaust the stack is refused', () => {
    expect(problemsOf('['.repeat(100_000))).toMatchObject([{ line: 0, found: expect.stringContaining('nesting') }])
  })

  it.each(['', '   \n', '// nothing'])('an empty file is named as such: %j', (text) => {
    expect(problemsOf(text)).toMatchObject([{ found: 'an empty file' }])
  })
})
