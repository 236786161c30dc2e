import { homedir } from 'node:os'
import { describe, expect, test } from 'vitest'
import { readServers } from './servers.ts'

const at = '/srv/project'
const read = (file: string, content: object | string) =>
  readServers(file, typeof content === 'string' ? content : JSON.stringify(content), {
    folder: at,
    environment: { IS_SET: 'yes' },
  })
const ref = (name: string): string => `\${${name}}`

describe('the files of', () => {
  test('Claude: command, args, env with references, and what is remote', () => {
    const servers = read('.mcp.json', {
      mcpServers: {
        files: {
          command: 'npx',
          args: ['-y', 'server', '.'],
          env: { KEY: ref('KEY'), N: 1, B: `x-${ref('B:-dflt')}`, S: ref('IS_SET:-no') },
        },
        docs: {
          type: 'http',
          url: `${ref('BASE:-https://example.com')}/mcp`,
          headers: { Authorization: `Bearer ${ref('TOKEN')}` },
        },
      },
    })
    expect(servers).toMatchObject([
      {
        pool: {
          id: 'files',
          command: 'npx',
          args: ['-y', 'server', '.'],
          protocol: 'mcp',
          env: { KEY: ref('KEY'), N: '1', B: 'x-dflt', S: ref('IS_SET') },
        },
        notes: [expect.stringContaining('B is not set, so its default "dflt"')],
      },
      { pool: { id: 'docs', url: 'https://example.com/mcp', headers: { Authorization: `Bearer ${ref('TOKEN')}` } } },
    ])
  })

  test('Claude: a command line has no variables, so places and defaults are written out', () => {
    const [server] = read('.mcp.json', {
      mcpServers: {
        s: { command: `${ref('HOME')}/bin/s`, args: [ref('CLAUDE_PROJECT_DIR:-.'), ref('LEVEL:-info')], cwd: 'sub' },
      },
    })
    expect(server).toMatchObject({
      pool: { command: `${homedir()}/bin/s`, args: [at, 'info'], cwd: `${at}/sub` },
      notes: [expect.stringContaining('its default is written out')],
    })
  })

  test('Claude for all projects: those of this one too', () => {
    const entry = (command: string) => ({ command })
    const content = {
      mcpServers: { everywhere: entry('a') },
      projects: { [at]: { mcpServers: { here: entry('b') } }, '/elsewhere': { mcpServers: { there: entry('c') } } },
    }
    expect(read('.claude.json', content).map(({ name }) => name)).toEqual(['everywhere', 'here'])
  })

  test('Cursor: places are written out, and what an argument refers to is told', () => {
    const [server] = read('mcp.json', {
      mcpServers: {
        s: {
          command: `${ref('userHome')}/bin/s`,
          args: [`${ref('workspaceFolder')}/x`, ref('env:KEY')],
          env: { KEY: ref('env:KEY') },
        },
      },
    })
    expect(server).toMatchObject({
      pool: { command: `${homedir()}/bin/s`, args: [`${at}/x`, ref('env:KEY')], env: { KEY: ref('KEY') } },
      notes: [expect.stringContaining('write it out')],
    })
  })

  test('VS Code: servers, inputs, and settings', () => {
    const servers = { gh: { type: 'stdio', command: 'docker', env: { TOKEN: ref('input:github-token') } } }
    const expected = [
      {
        pool: { id: 'gh', command: 'docker', env: { TOKEN: ref('GITHUB_TOKEN') } },
        notes: [expect.stringContaining('set GITHUB_TOKEN')],
      },
    ]
    expect(read('.vscode/mcp.json', { servers, inputs: [] })).toMatchObject(expected)
    expect(read('settings.json', { 'editor.tabSize': 2, mcp: { servers } })).toMatchObject(expected)
  })

  test('Gemini: a reference without braces, httpUrl', () => {
    const mcpServers = { a: { command: 'a', env: { K: '$K', P: 'pa$word' } }, b: { httpUrl: 'http://127.0.0.1:1/mcp' } }
    expect(read('settings.json', { mcpServers, theme: 'x' })).toMatchObject([
      { pool: { env: { K: ref('K'), P: 'pa$word' } } },
      { pool: { url: 'http://127.0.0.1:1/mcp' } },
    ])
  })

  test('opencode: a command as a list, its own references, what is off', () => {
    const mcp = {
      local: { type: 'local', command: ['bun', 'x', 'server'], environment: { K: '{env:K}', L: ref('L') } },
      remote: { type: 'remote', url: 'https://example.com/mcp', headers: { A: '{env:A}' } },
      off: { type: 'local', command: ['x'], enabled: false },
    }
    expect(read('opencode.json', { mcp })).toMatchObject([
      { pool: { command: 'bun', args: ['x', 'server'], env: { K: ref('K'), L: `$${ref('L')}` } } },
      { pool: { url: 'https://example.com/mcp', headers: { A: ref('A') } } },
      { name: 'off', notes: ['it is disabled there'] },
    ])
  })

  test('Codex: TOML, variables by name', () => {
    const servers = read(
      'config.toml',
      `model = "o3"
[mcp_servers.ctx]
command = "npx"
args = ["-y", "ctx"]
env_vars = ["CTX_KEY"]
[mcp_servers.ctx.env]
PRICE = "\${5}"
[mcp_servers.figma]
url = "https://mcp.figma.com/mcp"
bearer_token_env_var = "FIGMA"
http_headers = { X-R = "us" }
`,
    )
    expect(servers).toMatchObject([
      { pool: { id: 'ctx', args: ['-y', 'ctx'], env: { PRICE: `$${ref('5')}`, CTX_KEY: ref('CTX_KEY') } } },
      { pool: { url: 'https://mcp.figma.com/mcp', headers: { 'X-R': 'us', Authorization: `Bearer ${ref('FIGMA')}` } } },
    ])
  })

  test('Zed: agents speak ACP', () => {
    const content = '{ // comments\n "agent_servers": { "My Agent": { "command": "agent", "args": ["--acp"] } },\n}'
    expect(read('settings.json', content)).toMatchObject([{ pool: { id: 'My Agent', protocol: 'acp' } }])
  })
})

describe('what cannot be taken over', () => {
  test.each([
    ['{}', 'has nothing to import'],
    ['{"mcpServers": {}}', 'has nothing to import'],
    ['{"mcpServers": ', 'is not JSON'],
    ['[1]', 'has nothing to import'],
    ['a = ', 'is not TOML'],
  ])('%j', (text, said) => {
    expect(() => read('x', text)).toThrow(said)
  })

  test('single entries are told and the others taken', () => {
    const mcpServers = {
      a: null,
      b: {},
      c: { command: '' },
      d: { command: 'd' },
      e: { url: 'http://h/sse', type: 'sse' },
    }
    expect(read('x.json', { mcpServers })).toMatchObject([
      { name: 'a', notes: ['it is no object'] },
      { name: 'b', notes: ['it has neither a command nor a URL'] },
      { name: 'c', notes: ['it has neither a command nor a URL'] },
      { name: 'd', pool: { command: 'd' } },
      { name: 'e', notes: [expect.stringContaining('SSE')] },
    ])
  })
})
