/**
 * The servers and agents in a configuration file of another program, as pools of this one.
 *
 * The file is told by the key it keeps them under, not by its name. Nothing is opened and nothing is run; a file may hold
 * anything, and what cannot be taken over is said, entry by entry.
 */
import { resolve } from 'node:path'
import type { PoolDraft } from '../pool-edit.ts'
import { parseSource } from '../source.ts'
import { type Spelling, type Surroundings, translateValue, translateWord } from './references.ts'
import { parseToml, TomlMistake } from './toml.ts'

export interface ImportedServer {
  readonly name: string
  /** Left out: it cannot be taken over, and `notes` say why. */
  readonly pool?: PoolDraft
  readonly notes: readonly string[]
}

/** The file is not of a kind that is known, or is broken. */
export class ImportMistake extends Error {
  override readonly name = 'ImportMistake'
}

interface Kind {
  /** The way to its list. */
  readonly path: readonly string[]
  readonly spelling: Spelling
  readonly protocol: 'mcp' | 'acp'
  /** Who writes it so. */
  readonly of: string
}

const KINDS: readonly Kind[] = [
  { path: ['mcpServers'], spelling: 'dollar', protocol: 'mcp', of: 'Claude, Cursor, Gemini' },
  { path: ['servers'], spelling: 'dollar', protocol: 'mcp', of: 'VS Code' },
  { path: ['mcp', 'servers'], spelling: 'dollar', protocol: 'mcp', of: 'VS Code settings' },
  { path: ['mcp_servers'], spelling: 'none', protocol: 'mcp', of: 'Codex' },
  { path: ['mcp'], spelling: 'opencode', protocol: 'mcp', of: 'opencode' },
  { path: ['context_servers'], spelling: 'none', protocol: 'mcp', of: 'Zed' },
  { path: ['agent_servers'], spelling: 'none', protocol: 'acp', of: 'Zed, ACP agents' },
]

type Raw = Readonly<Record<string, unknown>>

export function readServers(file: string, text: string, around: Surroundings): readonly ImportedServer[] {
  const value = withProject(readAny(file, text), around.folder)
  const known = KINDS.flatMap((kind) => {
    const list = objectAt(value, kind.path)
    return list === undefined ? [] : Object.entries(list).map(([name, entry]) => ({ name, entry, kind }))
  })
  const own = known.filter(({ entry, kind }) => isEntry(entry) || kind.path.length > 1 || !isNested(kind, value))
  if (own.length === 0) throw new ImportMistake(`${file} has nothing to import: ${whatIsKnown()}`)
  return own.map(({ name, entry, kind }) => readEntry(name, entry, { ...kind, around }))
}

/** Claude keeps the servers of a project in one file for all of them. */
function withProject(value: Raw, folder: string): Raw {
  const own = objectAt(value, ['projects', folder, 'mcpServers'])
  return own === undefined ? value : { ...value, mcpServers: { ...asObject(value['mcpServers']), ...own } }
}

function whatIsKnown(): string {
  const rows = KINDS.map(({ path, of }) => `${path.join('.')} (${of})`)
  return `servers are looked for under ${rows.join(', ')}`
}

/** `mcp` is a list of servers to one program and holds one to another. */
function isNested({ path }: Kind, value: Raw): boolean {
  return objectAt(value, [...path, 'servers']) !== undefined
}

function isEntry(entry: unknown): boolean {
  const raw = asObject(entry)
  return raw !== undefined && ['command', 'url', 'httpUrl', 'serverUrl'].some((key) => key in raw)
}

function readAny(file: string, text: string): Raw {
  if (file.endsWith('.toml')) return readTomlText(file, text)
  const source = parseSource(file, text, 'an object')
  const value = asObject(source.value)
  if (value !== undefined && source.readable) return value
  if (!text.trimStart().startsWith('{')) return readTomlText(file, text)
  const [problem] = source.problems
  throw new ImportMistake(`${file} is not JSON: line ${problem?.line ?? 1} has ${problem?.found ?? 'no object'}`)
}

function readTomlText(file: string, text: string): Raw {
  try {
    return parseToml(text)
  } catch (error) {
    if (!(error instanceof TomlMistake)) throw error
    throw new ImportMistake(`${file} is not TOML: ${error.message}`, { cause: error })
  }
}

interface EntryKind extends Kind {
  readonly around: Surroundings
}

function readEntry(name: string, entry: unknown, kind: EntryKind): ImportedServer {
  const raw = asObject(entry)
  if (raw === undefined) return { name, notes: ['it is no object'] }
  if (raw['disabled'] === true || raw['enabled'] === false) return { name, notes: ['it is disabled there'] }
  const url = [raw['url'], raw['httpUrl'], raw['serverUrl']].find((each) => typeof each === 'string')
  if (url !== undefined) return remoteServer(name, String(url), raw, kind)
  const words = commandOf(raw)
  return words === undefined
    ? { name, notes: ['it has neither a command nor a URL'] }
    : localServer(name, words, raw, kind)
}

/** As text with `args`, as a list, or as an object with `path` (Zed). */
function commandOf(raw: Raw): readonly string[] | undefined {
  const inner = asObject(raw['command'])
  const command = inner?.['path'] ?? raw['command']
  const words = typeof command === 'string' ? [command, ...textsOf(inner?.['args'] ?? raw['args'])] : textsOf(command)
  return words.length === 0 || words[0] === '' ? undefined : words
}

function localServer(name: string, words: readonly string[], raw: Raw, kind: EntryKind): ImportedServer {
  const { spelling, around, protocol } = kind
  const notes: string[] = []
  const [command, ...args] = words.map((word) => noting(translateWord(word, spelling, around), notes))
  const inner = asObject(raw['command'])
  const env = translateMap({ ...asObject(raw['env'] ?? raw['environment'] ?? inner?.['env']) }, kind, notes)
  for (const variable of textsOf(raw['env_vars'])) env[variable] = `\${${variable}}`
  if (raw['envFile'] !== undefined) notes.push('its envFile is not read: put what it needs into env')
  const cwd = typeof raw['cwd'] === 'string' ? noting(translateWord(raw['cwd'], spelling, around), notes) : undefined
  const pool = {
    id: name,
    command: command!,
    ...(args.length === 0 ? {} : { args }),
    protocol,
    ...(cwd === undefined ? {} : { cwd: resolve(around.folder, cwd) }),
    ...(Object.keys(env).length === 0 ? {} : { env }),
  }
  return { name, pool, notes }
}

function remoteServer(name: string, url: string, raw: Raw, kind: EntryKind): ImportedServer {
  const notes: string[] = []
  const given = { ...asObject(raw['headers'] ?? raw['http_headers']) }
  const headers = translateMap(given, kind, notes)
  for (const [header, variable] of Object.entries(asObject(raw['env_http_headers']) ?? {}))
    headers[header] = `\${${variable}}`
  const bearer = raw['bearer_token_env_var']
  if (typeof bearer === 'string') headers['Authorization'] = `Bearer \${${bearer}}`
  if (raw['type'] === 'sse')
    notes.push('it speaks the old SSE transport, which the bus does not: use its Streamable HTTP address')
  const word = noting(translateValue(url, kind.spelling, kind.around), notes)
  return { name, pool: { id: name, url: word, ...(Object.keys(headers).length === 0 ? {} : { headers }) }, notes }
}

function translateMap(map: Raw, { spelling, around }: EntryKind, notes: string[]): Record<string, string> {
  const entries = Object.entries(map).filter(([, value]) => ['string', 'number', 'boolean'].includes(typeof value))
  return Object.fromEntries(
    entries.map(([name, value]) => [name, noting(translateValue(String(value), spelling, around), notes)]),
  )
}

function noting({ value, notes: found }: { value: string; notes: readonly string[] }, notes: string[]): string {
  notes.push(...found)
  return value
}

function objectAt(value: Raw, path: readonly string[]): Raw | undefined {
  let current: unknown = value
  for (const step of path) {
    const table = asObject(current)
    current = table !== undefined && Object.hasOwn(table, step) ? table[step] : undefined
  }
  return asObject(current)
}

function textsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((each) => ['string', 'number'].includes(typeof each)).map(String) : []
}

function asObject(value: unknown): Raw | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Raw) : undefined
}
