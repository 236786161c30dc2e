/**
 * Opens, checks and reads the access file (contract 9.9): the principals in it, or everything that is wrong with it.
 *
 * What is checked is the open descriptor, so nobody can put something else there between the look and the use. It never
 * throws for what stands in the place of the file, never prints, and no problem shows a token, a digest or a variable. A
 * file that has one problem is not used at all.
 */
import { createHash } from 'node:crypto'
import { closeSync, constants, readSync, type Stats } from 'node:fs'
import type { Environment } from '../config/environment.ts'
import { explainIssues } from '../config/explain.ts'
import { byPlace, type Finding, type Problem, quote, toRun } from '../config/problem.ts'
import { translateEnvironment, translateRights } from '../config/rights-schema.ts'
import { unresolvedIn } from '../config/rules.ts'
import { parseSource, type Source, unreadable } from '../config/source.ts'
import { NotAPlainFile, openPlainFile } from '../host/own-file.ts'
import { accessFile, accessFileSchema, type PrincipalEntry } from './access-schema.ts'
import { isReservedName, type Principal, Principals } from './principals.ts'

const MAX_FILE_BYTES = 4 * 1024 * 1024
/** Nobody reads more than that; a hostile file could have one in every line. */
const MAX_PROBLEMS = 100
const ROOT = 0

export interface AccessFileContent {
  readonly principals: Principals
  /** In the spelling of the file. */
  readonly entries: readonly PrincipalEntry[]
  readonly source: Source
}

export type AccessReading =
  | ({ readonly ok: true } & AccessFileContent)
  | { readonly ok: false; readonly problems: readonly Problem[]; readonly isMissing?: true }

/** Its bytes, and what the system says of it; or why it is not to be trusted. */
export type AccessBytes =
  | { readonly ok: true; readonly bytes: Buffer; readonly stats: Stats }
  | { readonly ok: false; readonly problems: readonly Problem[]; readonly isMissing?: true }

/** As a bus takes it: `environment` is what `${NAME}` refers to. */
export function readAccessFile(file: string, environment: Environment): AccessReading {
  const read = readAccessBytes(file)
  return read.ok ? parseAccessFile(file, read.bytes, environment) : read
}

/** For whoever looks at it or changes it for a bus: references stay as they are, and root may do so for any user. */
export function readAccessFileOfOthers(file: string): AccessReading {
  const read = readAccessBytes(file, { isForOthers: true })
  return read.ok ? parseAccessFile(file, read.bytes) : read
}

export function readAccessBytes(file: string, { isForOthers = false } = {}): AccessBytes {
  try {
    const { descriptor, stats } = openPlainFile(file, constants.O_RDONLY)
    try {
      const refusal = refuse(file, stats, isForOthers)
      return refusal === undefined ? readBounded(file, descriptor, stats) : asProblem(file, refusal)
    } finally {
      closeSync(descriptor)
    }
  } catch (error) {
    return asProblem(file, describe(error))
  }
}

export function parseAccessFile(file: string, bytes: Buffer, environment?: Environment): AccessReading {
  const text = decode(bytes)
  if (text === undefined) {
    return asProblem(file, {
      found: 'bytes that are not UTF-8',
      allowed: 'text in UTF-8',
      suggestion: 'save it as UTF-8',
    })
  }
  const source = parseSource(file, text, 'an object with "principals"')
  if (!source.readable) return { ok: false, problems: source.problems.slice(0, MAX_PROBLEMS) }
  const parsed = accessFile.safeParse(source.value)
  const wrong = parsed.success
    ? []
    : explainIssues(parsed.error.issues.slice(0, MAX_PROBLEMS), source.value, accessFileSchema())
  const broken = rulesBroken(source.value, environment)
  const problems = [...source.problems, ...[...wrong, ...broken].slice(0, MAX_PROBLEMS).map(source.place)]
  if (!parsed.success || problems.length > 0) {
    return { ok: false, problems: problems.sort(byPlace).slice(0, MAX_PROBLEMS) }
  }
  const { principals: entries } = parsed.data
  return {
    ok: true,
    principals: new Principals(entries.map((entry) => translate(entry, environment))),
    entries,
    source,
  }
}

/** What tells one content from another without keeping it. */
export function fingerprint(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}

function translate(entry: PrincipalEntry, environment: Environment = {}): Principal {
  return {
    name: entry.name,
    rights: translateRights(entry.role, entry),
    environment: translateEnvironment(entry.env ?? {}, environment),
    tokens: entry.tokens.map(({ sha256, expires }) => ({
      digest: sha256.toLowerCase(),
      ...(expires === undefined ? {} : { expiresAtMs: Date.parse(expires) }),
    })),
  }
}

/**
 * What one entry demands of the others: names and tokens are somebody's own. It looks at the raw value, so that its
 * findings come with those of the schema, and says nothing about values of a wrong kind.
 */
function rulesBroken(value: unknown, environment: Environment | undefined): Finding[] {
  const names = new Set<string>()
  const digests = new Set<string>()
  return listIn(value, 'principals').flatMap((entry, index) => {
    const path = ['principals', index]
    const { name, env } = asObject(entry)
    const findings = typeof name === 'string' ? nameFindings(name, [...path, 'name'], names) : []
    for (const [at, token] of listIn(entry, 'tokens').entries()) {
      const digest = asObject(token)['sha256']
      if (typeof digest !== 'string') continue
      const place = [...path, 'tokens', at]
      if (digests.has(digest.toLowerCase()))
        findings.push({ path: place, found: 'a token a second time', allowed: 'each token once' })
      digests.add(digest.toLowerCase())
    }
    if (environment !== undefined) findings.push(...unresolvedIn(env, [...path, 'env'], environment))
    return findings
  })
}

function asObject(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {}
}

function listIn(value: unknown, key: string): readonly unknown[] {
  const list = asObject(value)[key]
  return Array.isArray(list) ? list : []
}

function nameFindings(name: string, path: (string | number)[], names: Set<string>): Finding[] {
  if (isReservedName(name)) return [{ path, found: quote(name), allowed: 'any other name: this one is reserved' }]
  if (!names.has(name)) return names.add(name) && []
  return [{ path, found: `${quote(name)} a second time`, allowed: 'a name of its own for each principal' }]
}

type Sentence = Pick<Problem, 'found' | 'allowed'> & { readonly suggestion?: string; readonly isMissing?: true }

function refuse(file: string, { mode, uid, size }: Stats, isForOthers: boolean): Sentence | undefined {
  const own = process.getuid?.()
  const isOwn = uid === own || uid === ROOT || (isForOthers && own === ROOT)
  if (own !== undefined && !isOwn) {
    return {
      found: `a file of another user (${uid})`,
      allowed: 'a file of the user of the bus, or of root',
      suggestion: toRun(`sudo chown ${own}`, file),
    }
  }
  if (own !== undefined && (mode & 0o077) !== 0) {
    return {
      found: `a file that others may use (mode ${(mode & 0o777).toString(8).padStart(4, '0')})`,
      allowed: 'a file only its owner may read and write',
      suggestion: toRun('chmod 600', file),
    }
  }
  return size > MAX_FILE_BYTES ? TOO_LARGE : undefined
}

const TOO_LARGE: Sentence = { found: 'a file that is too large', allowed: `at most ${MAX_FILE_BYTES} bytes` }

const FAILURES: Readonly<Record<string, Sentence>> = {
  EACCES: {
    found: 'a file that may not be read',
    allowed: 'a file that this user may read',
    suggestion: 'check its owner and mode, and those of the folders above it',
  },
}

function describe(error: unknown): Sentence {
  if (error instanceof NotAPlainFile) return { found: error.what, allowed: 'a plain file' }
  const code = (error as NodeJS.ErrnoException).code ?? 'unknown'
  if (code === 'ENOENT' || code === 'ENOTDIR') {
    const suggestion = 'make it with "stdio-bus token add NAME", which prints the first token'
    return { found: 'no such file', allowed: 'an access file', suggestion, isMissing: true }
  }
  return FAILURES[code] ?? { found: `a failure to read (${code})`, allowed: 'a readable file' }
}

/** It may grow while it is read: what counts is what was read. */
function readBounded(file: string, descriptor: number, stats: Stats): AccessBytes {
  const bytes = Buffer.allocUnsafe(MAX_FILE_BYTES + 1)
  let length = 0
  for (let read = -1; read !== 0 && length < bytes.length; length += read) {
    read = readSync(descriptor, bytes, length, bytes.length - length, null)
  }
  if (length > MAX_FILE_BYTES) return asProblem(file, TOO_LARGE)
  return { ok: true, bytes: Buffer.from(bytes.subarray(0, length)), stats }
}

function asProblem(file: string, { found, allowed, suggestion, isMissing }: Sentence) {
  const { problems } = unreadable(file, found, allowed, suggestion)
  return { ok: false as const, problems, ...(isMissing ? { isMissing } : {}) }
}

function decode(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}
