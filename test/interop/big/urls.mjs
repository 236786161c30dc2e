/** Hosts that are given a pool by its URL, each by its own configuration file: what they say of the server when they look for it. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { binOf } from './inspector.mjs'

/** Where a host looks, what it finds there, what it is asked, and what it says of a server that it could use. */
const HOSTS = {
  inspector: {
    program: '@modelcontextprotocol/inspector',
    file: 'inspector.json',
    settings: (url) => ({ mcpServers: { bus: { type: 'streamable-http', url } } }),
    args: (file) => ['--cli', '--config', file, '--server', 'bus', '--method', 'tools/list'],
    isWell: (said) => said.includes('"echo"'),
  },
  'claude-code': {
    program: '@anthropic-ai/claude-code',
    file: '.claude.json',
    settings: (url) => ({ mcpServers: { bus: { type: 'http', url } } }),
    args: () => ['mcp', 'list'],
    isWell: (said) => /bus:.*Connected/.test(said),
  },
  'gemini-cli': {
    program: '@google/gemini-cli',
    file: '.gemini/settings.json',
    // Of a folder that nobody has called trusted it reads no servers.
    settings: (url) => ({ mcpServers: { bus: { httpUrl: url } }, security: { folderTrust: { enabled: false } } }),
    args: () => ['mcp', 'list'],
    isWell: (said) => /bus:.*Connected/.test(said),
  },
  qwen: {
    program: '@qwen-code/qwen-code',
    file: '.qwen/settings.json',
    settings: (url) => ({ mcpServers: { bus: { httpUrl: url } } }),
    args: () => ['mcp', 'list'],
    isWell: (said) => /bus:.*Connected/.test(said),
  },
  opencode: {
    program: 'opencode-ai',
    file: 'opencode.json',
    settings: (url) => ({ mcp: { bus: { type: 'remote', url, enabled: true } } }),
    args: () => ['mcp', 'list'],
    isWell: (said) => /✓ bus .*connected/.test(said),
  },
}

export async function runUrls({ folder, url, runPackage, check }) {
  for (const [name, { program, file, settings, args, isWell }] of Object.entries(HOSTS)) {
    const path = join(folder, file)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, JSON.stringify(settings(url)))
    const said = await runPackage(binOf(folder, program), args(path))
    check(`${name}: a pool by its URL`, isWell(said.stdout + said.stderr), said)
  }
}
