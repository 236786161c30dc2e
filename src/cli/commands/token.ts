/**
 * `stdio-bus token add|ls|rm|rotate|test`: who may use the bus, as the access file says (contract 9.8).
 *
 * A token appears once, alone on stdout; everything else is said on stderr, so that `token add NAME > file` is enough. No
 * flag takes a token, since others can read an argument list. Exit 0 done, 1 no such principal or a failure of the world, 2 a mistake.
 */
import { resolve } from 'node:path'
import { type Command, Option } from 'commander'
import { createColors } from 'picocolors'
import type { ZodType } from 'zod'
import { AccessEditFailure, type Change, editAccessFile } from '../../access/access-edit.ts'
import { type AccessFileContent, readAccessFileOfOthers } from '../../access/access-file.ts'
import { NAME, NAME_ALLOWED, type PrincipalEntry, ROLES } from '../../access/access-schema.ts'
import { tryOut } from '../../access/dry-run.ts'
import { addPrincipal, lastEndOf, removePrincipal, rotateToken, timeOf } from '../../access/principal-edit.ts'
import { drawPrincipals, rowOf } from '../../access/principal-listing.ts'
import { isReservedName } from '../../access/principals.ts'
import { digestOf, makeToken } from '../../access/token.ts'
import { DEFAULT_FILE, readConfig } from '../../config/read.ts'
import { formatProblems } from '../../config/report.ts'
import { rightsShape } from '../../config/rights-schema.ts'
import { wantsColor } from '../../host/terminal.ts'
import { readDuration } from '../duration.ts'
import { UserMistake } from '../user-mistake.ts'

interface Where {
  readonly config?: string
  readonly file?: string
}

interface AddFlags extends Where {
  readonly pools?: string
  readonly role: PrincipalEntry['role']
  readonly tools?: string
  readonly rate?: string
  readonly expires?: string
}

interface RotateFlags extends Where {
  readonly keep?: string
  readonly expires?: string
}

interface TestFlags extends Where {
  readonly pool: string
  readonly tool?: string
}

const PATTERNS_ALLOWED = 'at most 256 patterns of 1 to 256 characters, separated by commas'
const DURATION_ALLOWED = 'give a span of time such as 90s, 15m, 12h or 30d'

/** The file has nobody of that name. */
class NobodyThere extends Error {
  override readonly name = 'NobodyThere'
  readonly exitCode = 1
}

export function addToken(program: Command): void {
  const token = program.command('token').description('who may use the bus: principals and their tokens')
  where(token.command('add <name>').description('add a principal and print its token, once'))
    .option('--pools <patterns>', 'pools and agents it may use, such as coder,tools-* (default: all)')
    .addOption(new Option('--role <role>', 'what it may do').choices([...ROLES]).default('user'))
    .option('--tools <patterns>', 'tools it may call, such as read_*,git::* (default: all)')
    .option('--rate <n/period>', 'messages in a second, minute or hour: 50/s, 600/m, 1000/h')
    .option('--expires <span>', 'how long the token is good: 90s, 12h, 30d (default: for ever)')
    .action(add)
  where(token.command('ls').description('list the principals; tokens are never shown'))
    .option('--json', 'print JSON')
    .action(list)
  where(token.command('rm <name>').description('remove a principal: its connections end within a second')).action(
    remove,
  )
  where(token.command('rotate <name>').description('print a new token; the old ones end'))
    .option('--keep <span>', 'let the old tokens go on for so long: 1h')
    .option('--expires <span>', 'how long the new token is good (default: until the old one would have ended)')
    .action(rotate)
  where(token.command('test <name>').description('say whether a principal may use a pool, and which rule says so'))
    .requiredOption('--pool <pool>', 'the pool or agent')
    .option('--tool <tool>', 'a tool of it')
    .action(test)
}

function where(command: Command): Command {
  return command
    .option('--config <path>', `take the access file that this configuration names (default: ./${DEFAULT_FILE})`)
    .option('--file <path>', 'the access file itself')
}

async function add(name: string, flags: AddFlags): Promise<void> {
  checkName(name)
  const pools = flags.pools === undefined ? ['*'] : readPatterns('--pools', flags.pools)
  const tools = flags.tools === undefined ? undefined : readPatterns('--tools', flags.tools)
  if (flags.rate !== undefined) checkFlag(rightsShape.rate, '--rate', flags.rate)
  const expires = flags.expires === undefined ? undefined : timeOf(Date.now() + readSpan('--expires', flags.expires))
  const file = await accessFileOf(flags)
  const token = makeToken()
  await edit(file, true, (current) => {
    if (current.entries.some((entry) => entry.name === name)) throw taken(name)
    return addPrincipal(current, {
      name,
      role: flags.role,
      pools,
      ...(tools === undefined ? {} : { tools: { allow: tools } }),
      ...(flags.rate === undefined ? {} : { rate: flags.rate }),
      tokens: [{ sha256: digestOf(token), ...(expires === undefined ? {} : { expires }) }],
    })
  })
  if (flags.pools === undefined) advise(`${name} may use every pool: "pools": ["*"] was written, --pools names some.`)
  hand(token, file, expires)
}

async function list(flags: Where & { readonly json?: boolean }): Promise<void> {
  const file = await accessFileOf(flags)
  const nowMs = Date.now()
  const rows = read(file).entries.map((entry) => rowOf(entry, nowMs))
  if (flags.json) return void process.stdout.write(`${JSON.stringify(rows, null, 2)}\n`)
  if (rows.length === 0) return advise(`Nobody is in ${file} yet: stdio-bus token add NAME.`)
  process.stdout.write(drawPrincipals(rows, createColors(wantsColor(process.stdout)).dim))
}

async function remove(name: string, flags: Where): Promise<void> {
  const file = await accessFileOf(flags)
  await edit(file, false, (current) => {
    entryOf(current.entries, name, file)
    return removePrincipal(current, name)
  })
  advise(`${name} is gone from ${file}; a running bus ends its connections within a second.`)
}

async function rotate(name: string, flags: RotateFlags): Promise<void> {
  const keepMs = flags.keep === undefined ? undefined : readSpan('--keep', flags.keep)
  const spanMs = flags.expires === undefined ? undefined : readSpan('--expires', flags.expires)
  const file = await accessFileOf(flags)
  const token = makeToken()
  const nowMs = Date.now()
  let expires: string | undefined
  await edit(file, false, (current) => {
    // The end that was given to the old one holds for its successor, unless it lies behind.
    const before = lastEndOf(entryOf(current.entries, name, file)) ?? 0
    const endMs = spanMs === undefined ? before : nowMs + spanMs
    expires = endMs > nowMs ? timeOf(endMs) : undefined
    const rotation = { nowMs, ...(keepMs === undefined ? {} : { keepUntilMs: nowMs + keepMs }) }
    const made = { sha256: digestOf(token), ...(expires === undefined ? {} : { expires }) }
    const text = rotateToken(current, name, made, rotation)
    if (text === 'full')
      throw new UserMistake(`${name} has 8 tokens that go on: rotate without --keep, which ends them`)
    return text
  })
  advise(
    keepMs === undefined ? `The old tokens of ${name} have ended.` : `The old tokens of ${name} end in ${flags.keep}.`,
  )
  hand(token, file, expires)
}

async function test(name: string, flags: TestFlags): Promise<void> {
  const file = await accessFileOf(flags)
  const { entries, principals } = read(file)
  entryOf(entries, name, file)
  const { pool, tool } = flags
  const { isAllowed, rule } = tryOut(principals.byName(name)!, tool === undefined ? { pool } : { pool, tool })
  const what = tool === undefined ? pool : `${tool} of ${pool}`
  process.stdout.write(`${name} may ${isAllowed ? '' : 'not '}use ${what}: ${rule}\n`)
  process.exitCode = isAllowed ? 0 : 1
}

/** The one time that a token is shown. */
function hand(token: string, file: string, expires: string | undefined): void {
  const end = expires === undefined ? 'does not expire' : `ends ${expires}`
  advise(`The token ${end} and is shown only now: ${file} has its digest alone.`)
  advise('Clients take it from STDIO_BUS_TOKEN or --token-file.')
  process.stdout.write(`${token}\n`)
}

function advise(text: string): void {
  process.stderr.write(`${text}\n`)
}

async function accessFileOf({ file, config: path }: Where): Promise<string> {
  if (file !== undefined && path !== undefined)
    throw new UserMistake('--config and --file both say where: leave one out')
  if (file !== undefined) return resolve(file)
  const reading = await readConfig(path)
  // What else is wrong there, such as a variable that only the bus has, is no matter here.
  const config = reading.ok ? reading.config : reading.draft?.config
  if (config?.access?.file !== undefined) return config.access.file
  const about = reading.ok ? '' : `${formatProblems(reading.problems).trimEnd()}\n`
  throw new UserMistake(
    `${about}${path ?? DEFAULT_FILE} names no access file: add "access": { "file": "stdio-bus.access.json" } to it, or give --file`,
  )
}

function read(file: string): AccessFileContent {
  const reading = readAccessFileOfOthers(file)
  if (!reading.ok) throw new UserMistake(formatProblems(reading.problems).trimEnd())
  return reading
}

async function edit(file: string, mayCreate: boolean, change: Change): Promise<void> {
  try {
    await editAccessFile(file, mayCreate, change)
  } catch (error) {
    if (!(error instanceof AccessEditFailure)) throw error
    const { message, problems } = error
    if (problems.length > 0) throw new UserMistake(`${message}\n${formatProblems(problems).trimEnd()}`)
    throw Object.assign(error, { exitCode: 1 })
  }
}

function entryOf(entries: readonly PrincipalEntry[], name: string, file: string): PrincipalEntry {
  const found = entries.find((entry) => entry.name === name)
  if (found === undefined)
    throw new NobodyThere(`there is no ${JSON.stringify(name)} in ${file}; see stdio-bus token ls`)
  return found
}

function checkName(name: string): void {
  if (!NAME.test(name)) throw new UserMistake(`${JSON.stringify(name)} is no name: ${NAME_ALLOWED}`)
  if (isReservedName(name)) throw new UserMistake(`${JSON.stringify(name)} is reserved: choose another name`)
}

function taken(name: string): UserMistake {
  return new UserMistake(
    `${JSON.stringify(name)} is there already: stdio-bus token rotate ${name} gives it a new token`,
  )
}

function readPatterns(flag: string, text: string): string[] {
  const patterns = text === '' ? [] : text.split(',').map((part) => part.trim())
  if (!rightsShape.pools.safeParse(patterns).success) throw new UserMistake(`${flag} ${text}: ${PATTERNS_ALLOWED}`)
  return patterns
}

function checkFlag(schema: ZodType, flag: string, value: string): void {
  const { error } = schema.safeParse(value)
  if (error !== undefined) throw new UserMistake(`${flag} ${value}: give ${error.issues[0]?.message}`)
}

function readSpan(flag: string, text: string): number {
  const ms = readDuration(text)
  if (ms === undefined || ms === 0) throw new UserMistake(`${flag} ${text}: ${DURATION_ALLOWED}`)
  return ms
}
