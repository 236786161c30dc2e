/**
 * Reads a configuration file and gives back either the configuration or every problem in it, all at once (contract 8.4).
 *
 * It never throws for what a file says, and never prints. A file that has one problem is not used at all.
 */
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { BusConfig } from './bus-config.ts'
import { draftOf } from './draft.ts'
import type { Environment } from './environment.ts'
import { explainIssues } from './explain.ts'
import { placesFor } from './paths.ts'
import { byPlace, type Finding, type Problem, showPath } from './problem.ts'
import { checkRules } from './rules.ts'
import { configFile } from './schema.ts'
import { parseSource, type Source, unreadable } from './source.ts'
import { translate } from './translate.ts'

export const DEFAULT_FILE = 'stdio-bus.json'

export interface ReadOptions {
  /** The environment that `${NAME}` refers to; that of the process unless given. */
  readonly environment?: Environment
  /** Where the bus was started; that of the process unless given. */
  readonly cwd?: string
}

/** A configuration and the text it came from. */
export interface Read {
  readonly config: BusConfig
  readonly source: Source
}

export type Reading =
  | ({ readonly ok: true } & Read)
  | {
      readonly ok: false
      readonly problems: readonly Problem[]
      /** What is left without the mistakes: to be looked at further, never to be run. */
      readonly draft?: Read
    }

const MAX_FILE_BYTES = 16 * 1024 * 1024

/** Reads `path`, or `./stdio-bus.json` when none is given. */
export async function readConfig(path: string | undefined, options: ReadOptions = {}): Promise<Reading> {
  const file = path ?? DEFAULT_FILE
  const read = await readText(resolve(options.cwd ?? process.cwd(), file))
  if ('failure' in read) return { ok: false, problems: describeFailure(file, read.failure) }
  return parseConfig(file, read.text, options)
}

/** The same for a text that is already there; `file` names it and is the base of its relative paths. */
export function parseConfig(file: string, text: string, options: ReadOptions = {}): Reading {
  const { environment = process.env, cwd = process.cwd() } = options
  const absolute = resolve(cwd, file)
  const places = placesFor(absolute, environment, cwd)
  const source = parseSource(file, text)
  if (!source.readable) return { ok: false, problems: source.problems }
  const tooMany = tooManyPools(source.value)
  if (tooMany !== undefined) return { ok: false, problems: [source.place(tooMany)] }

  const parsed = configFile.safeParse(source.value)
  const wrong = parsed.success ? [] : explainIssues(parsed.error.issues, source.value)
  const broken = checkRules(source.value, { places, environment })
  const problems = [...source.problems, ...withoutEchoes([...wrong, ...broken]).map(source.place)]
  const meant = parsed.success ? parsed.data : draftOf(source.value, wrong)
  const read = meant && { source, config: { ...translate(meant, { file: absolute, places, environment }), source } }
  if (problems.length === 0 && read !== undefined) return { ok: true, ...read }
  return { ok: false, problems: problems.sort(byPlace), ...(read === undefined ? {} : { draft: read }) }
}

/** More than anybody runs, and as many as a node may tell others of; so that what is looked at pool by pool ends soon. */
const MAX_POOLS = 1_024

function tooManyPools(value: unknown): Finding | undefined {
  const count = typeof value === 'object' && value !== null && 'pools' in value ? listLength(value.pools) : 0
  if (count <= MAX_POOLS) return undefined
  return { path: ['pools'], found: `${count} pools`, allowed: `at most ${MAX_POOLS}` }
}

function listLength(value: unknown): number {
  return Array.isArray(value) ? value.length : 0
}

/** One mistake is told once: the first finding at a place is the most precise. */
function withoutEchoes(findings: readonly Finding[]): Finding[] {
  const seen = new Set<string>()
  return findings.filter(({ path, found }) => {
    const key = `${showPath(path)} ${found}`
    return !seen.has(key) && seen.add(key)
  })
}

/** An errno code, or a reason of our own. */
type Failure = string
type Text = { readonly text: string } | { readonly failure: Failure }

/** A pipe that the shell has made is written by somebody; one that lies in a folder may never be. */
const PIPES_OF_THE_SHELL = /^\/(?:dev\/fd|proc\/)/

async function readText(path: string): Promise<Text> {
  try {
    if ((await stat(path)).isFIFO() && !PIPES_OF_THE_SHELL.test(path)) return { failure: 'pipe' }
    const chunks: Buffer[] = []
    for await (const chunk of createReadStream(path, { end: MAX_FILE_BYTES })) chunks.push(chunk)
    const bytes = Buffer.concat(chunks)
    return bytes.length > MAX_FILE_BYTES ? { failure: 'too large' } : decode(bytes)
  } catch (error) {
    return { failure: (error as NodeJS.ErrnoException).code ?? 'unknown' }
  }
}

function decode(bytes: Buffer): Text {
  try {
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) }
  } catch {
    return { failure: 'not UTF-8' }
  }
}

const INIT = 'run "stdio-bus init" to write one, or name another with --config'

const FAILURES: Record<string, { found: string; allowed: string; suggestion?: string }> = {
  ENOENT: { found: 'no such file', allowed: 'a configuration file', suggestion: INIT },
  ENOTDIR: { found: 'no such file', allowed: 'a configuration file', suggestion: INIT },
  EISDIR: {
    found: 'a directory',
    allowed: 'a configuration file',
    suggestion: `name the file in it, such as ${DEFAULT_FILE}`,
  },
  ENXIO: { found: 'a socket', allowed: 'a configuration file', suggestion: INIT },
  ELOOP: { found: 'a link that leads back to itself', allowed: 'a configuration file', suggestion: INIT },
  pipe: { found: 'a pipe', allowed: 'a configuration file', suggestion: INIT },
  EACCES: {
    found: 'a file that may not be read',
    allowed: 'a file that this user may read',
    suggestion: 'check its owner and mode',
  },
  'too large': { found: 'a file that is too large', allowed: `at most ${MAX_FILE_BYTES} bytes` },
  'not UTF-8': { found: 'bytes that are not UTF-8', allowed: 'text in UTF-8', suggestion: 'save it as UTF-8' },
}

function describeFailure(file: string, failure: Failure): readonly Problem[] {
  const unknown = { found: `a failure to read (${failure})`, allowed: 'a readable file', suggestion: undefined }
  const { found, allowed, suggestion } = FAILURES[failure] ?? unknown
  return unreadable(file, found, allowed, suggestion).problems
}
