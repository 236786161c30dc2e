/**
 * `stdio-bus import FILE`: the servers of another program's file as pools of this configuration.
 *
 * What is there already stays as it is, what cannot be taken over is said, and the other file is only read.
 */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import type { Command } from 'commander'
import { problemsIn } from '../../config/edit-config.ts'
import { type ImportedServer, ImportMistake, readServers } from '../../config/import/servers.ts'
import { addPool, type PoolDraft, type PoolEdit, poolNames } from '../../config/pool-edit.ts'
import { DEFAULT_FILE } from '../../config/read.ts'
import { printable } from '../../wire/printable.ts'
import { changeConfig, nextStep, troublesOf } from '../change-config.ts'
import { UserMistake } from '../user-mistake.ts'

interface ImportFlags {
  readonly config: string
  readonly only?: readonly string[]
  readonly dryRun?: boolean
}

const MAX_FILE_BYTES = 8 * 1024 * 1024
/** Folders that programs keep their settings in: what such a file is about is the folder around. */
const SETTINGS = new Set(['.vscode', '.cursor', '.gemini', '.claude', '.codex', '.zed'])

export function addImport(program: Command): void {
  program
    .command('import')
    .description('add the servers of a file of Claude, Cursor, VS Code, Codex, Gemini or opencode')
    .argument('[file]', 'it is only read; left out, the usual ones on this machine are listed')
    .option('--config <path>', 'the file to change; it is made if it is not there', DEFAULT_FILE)
    .option('--only <name...>', 'these alone')
    .option('--dry-run', 'print the pools and change nothing')
    .action(async (file: string | undefined, flags: ImportFlags) => {
      if (file === undefined) throw new UserMistake(suggestFiles())
      await importFrom(file, flags)
    })
}

async function importFrom(file: string, { config, only, dryRun }: ImportFlags): Promise<void> {
  const servers = chosen(readServersOf(file), only)
  const drafts = servers.flatMap(({ pool }) => (pool === undefined ? [] : [pool]))
  if (dryRun) return void process.stdout.write(`${JSON.stringify({ pools: drafts }, null, 2)}\n`)
  const { added, present, refused, notes } = await addAll(config, drafts)
  for (const id of added) process.stdout.write(`added ${printable(id)}\n`)
  for (const note of [...notes, ...servers.flatMap(notesOf), ...refused]) process.stderr.write(`${printable(note)}\n`)
  for (const id of present) process.stderr.write(`${printable(id)} is there already and stays as it is\n`)
  if (added.length === 0) return void process.stdout.write(`nothing new for ${config}\n`)
  const troubles = await troublesOf(config, added)
  process.stderr.write(troubles.text)
  process.stdout.write(await nextStep(config, troubles))
}

interface Taken extends PoolEdit {
  readonly added: readonly string[]
  readonly present: readonly string[]
  /** What the bus would not have, each with what is wrong with it. */
  readonly refused: readonly string[]
}

async function addAll(config: string, drafts: readonly PoolDraft[]): Promise<Taken> {
  let taken: Taken = { text: '', notes: [], added: [], present: [], refused: [] }
  if (drafts.length === 0) return taken
  await changeConfig(config, (text) => {
    const names = new Set(poolNames(text))
    const present = drafts.filter(({ id }) => names.has(id)).map(({ id }) => id)
    taken = drafts
      .filter(({ id }) => !names.has(id))
      .reduce<Taken>((before, pool) => takeOne(config, before, pool), { ...taken, text, present })
    const { added, refused } = taken
    if (added.length === 0 && refused.length > 0) throw new UserMistake(printable(refused.join('; ')))
    return taken
  })
  return taken
}

/** One that is not right is left out, and keeps none of the others out. */
function takeOne(config: string, before: Taken, pool: PoolDraft): Taken {
  const { text, notes } = addPool(before.text, pool)
  const problem = problemsIn(config, text).find(({ severity }) => severity === 'error')
  if (problem === undefined)
    return { ...before, text, notes: [...before.notes, ...notes], added: [...before.added, pool.id] }
  const { found, allowed } = problem
  return { ...before, refused: [...before.refused, `left out ${pool.id}: found ${found}; allowed: ${allowed}`] }
}

function notesOf({ name, pool, notes }: ImportedServer): string[] {
  return notes.map((note) => (pool === undefined ? `left out ${name}: ${note}` : `${name}: ${note}`))
}

function chosen(servers: readonly ImportedServer[], only: readonly string[] | undefined): readonly ImportedServer[] {
  const missing = (only ?? []).find((wanted) => !servers.some(({ name }) => name === wanted))
  if (missing === undefined) return only === undefined ? servers : servers.filter(({ name }) => only.includes(name))
  const names = servers.map(({ name }) => printable(name)).join(', ')
  throw new UserMistake(`there is no ${JSON.stringify(missing)} in it: it has ${names}`)
}

function readServersOf(file: string): readonly ImportedServer[] {
  const stats = statSync(file, { throwIfNoEntry: false })
  if (stats === undefined) throw new UserMistake(`there is no ${file}: ${suggestFiles()}`)
  if (!stats.isFile()) throw new UserMistake(`${file} is no file: name the file itself`)
  if (stats.size > MAX_FILE_BYTES) throw new UserMistake(`${file} has more than ${MAX_FILE_BYTES} bytes`)
  try {
    return readServers(file, readFileSync(file, 'utf8'), { folder: folderOf(file), environment: process.env })
  } catch (error) {
    if (!(error instanceof ImportMistake)) throw error
    throw new UserMistake(printable(error.message), { cause: error })
  }
}

function folderOf(file: string): string {
  const folder = dirname(resolve(file))
  // What is in the home of a user is about no folder; then it is about the one we are in.
  if (folder === homedir() || dirname(folder) === homedir()) return process.cwd()
  return SETTINGS.has(basename(folder)) ? dirname(folder) : folder
}

function suggestFiles(): string {
  const home = homedir()
  const usual = [
    ...[
      '.mcp.json',
      '.cursor/mcp.json',
      '.vscode/mcp.json',
      '.gemini/settings.json',
      'opencode.json',
      '.codex/config.toml',
    ],
    ...['.claude.json', '.cursor/mcp.json', '.gemini/settings.json', '.codex/config.toml'].map((name) =>
      join(home, name),
    ),
    join(home, '.config/opencode/opencode.json'),
    join(home, '.config/Claude/claude_desktop_config.json'),
    join(home, 'Library/Application Support/Claude/claude_desktop_config.json'),
  ]
  const found = usual.filter((path) => existsSync(path))
  const known = 'name a file of Claude (.mcp.json), Cursor, VS Code (.vscode/mcp.json), Codex, Gemini or opencode'
  return found.length === 0 ? known : `${known}; here there are: ${found.join(', ')}`
}
