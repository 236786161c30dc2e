/**
 * Every way in which an agent cannot be named, found, installed or started, in one table.
 *
 * A reason is stable: programs may compare it, documents may list it. Each row says what is wrong and the way out, and
 * whether the mistake is the user's (exit 2) or the world's (exit 1), contract 8.4. No row ever quotes the content of a
 * file: it may be a secret.
 */
import { printable } from './printable.ts'

interface Row {
  readonly exitCode: 1 | 2
  readonly wrong: (subject: string) => string
  readonly wayOut: string
}

const ROWS = {
  unknown_agent: {
    exitCode: 2,
    wrong: (id) => `there is no agent "${id}" in the index`,
    wayOut: 'list the known ones with "stdio-bus registry ls", or describe it in an agents file (--agents FILE)',
  },
  bad_entry: {
    exitCode: 2,
    wrong: (id) => `the entry of agent "${id}" is not usable`,
    wayOut: 'correct the entry, or replace it by one with the same id in an agents file (--agents FILE)',
  },
  platform_unsupported: {
    exitCode: 1,
    wrong: (id) => `agent "${id}" has no distribution for this platform`,
    wayOut: 'use another machine or agent, or add a distribution for this platform in an agents file (--agents FILE)',
  },
  distribution_missing: {
    exitCode: 2,
    wrong: (id) => `agent "${id}" does not have the distribution that was asked for`,
    wayOut: 'leave "distribution" out, or name one that the agent has ("stdio-bus registry show ID")',
  },
  runtime_missing: {
    exitCode: 1,
    wrong: (program) => `the program "${program}" is needed and is not in PATH`,
    wayOut: 'install it, or choose another distribution of the agent if there is one ("stdio-bus registry show ID")',
  },
  network: {
    exitCode: 1,
    wrong: (target) => `cannot fetch ${target}`,
    wayOut:
      'check the network and the proxy variables (HTTPS_PROXY, NO_PROXY), then try again; what is installed starts offline',
  },
  insecure_url: {
    exitCode: 2,
    wrong: (url) => `${url} is plain http to another machine: whoever is in between decides what runs here`,
    wayOut: 'use https; an archive may also come over http when its entry has a sha256',
  },
  too_large: {
    exitCode: 1,
    wrong: (what) => `${what} is larger than this program accepts`,
    wayOut:
      'check that the address is the right one; install the agent by hand and name its command in the pool if it is',
  },
  checksum_mismatch: {
    exitCode: 1,
    wrong: (url) => `the sha256 of ${url} is not the one in the index; nothing was installed`,
    wayOut: 'refresh the index and try again; if it stays wrong, do not run this archive and tell its publisher',
  },
  archive_refused: {
    exitCode: 1,
    wrong: (url) => `the archive ${url} would write outside its folder; nothing was installed`,
    wayOut: 'do not use this archive; tell its publisher',
  },
  archive_broken: {
    exitCode: 1,
    wrong: (url) => `the archive ${url} cannot be read; nothing was installed`,
    wayOut: 'try again; if it stays broken, use another distribution of the agent or tell its publisher',
  },
  package_not_found: {
    exitCode: 1,
    wrong: (name) => `the package ${name} does not exist in that version`,
    wayOut: 'refresh the index, or correct the package in the agents file',
  },
  install_failed: {
    exitCode: 1,
    wrong: (name) => `${name} could not be installed`,
    wayOut: 'read the reason given, then try again; "stdio-bus registry show ID" names other distributions',
  },
  command_missing: {
    exitCode: 1,
    wrong: (name) => `${name} was installed but has no program to start`,
    wayOut: 'name the program as "cmd" of the distribution in an agents file (--agents FILE)',
  },
  start_failed: {
    exitCode: 1,
    wrong: (id) => `agent "${id}" cannot be started`,
    wayOut: 'check that the program exists, may be executed and was made for this system',
  },
  index_unreadable: {
    exitCode: 2,
    wrong: (file) => `the index ${file} cannot be used`,
    wayOut:
      'it must be {"version": "1.0.0", "agents": [...]}; check the path or address given by --index, STDIO_BUS_REGISTRY or the configuration',
  },
  index_absent: {
    exitCode: 1,
    wrong: (why) => `without the index it is not known what is current: ${why}`,
    wayOut: 'nothing was changed; check the network and the address of the index, then try again',
  },
  not_installed: {
    exitCode: 2,
    wrong: (id) => `agent "${id}" is not installed`,
    wayOut: '"stdio-bus registry ls" marks what is',
  },
  agents_unreadable: {
    exitCode: 2,
    wrong: (file) => `the agents file ${file} cannot be used`,
    wayOut:
      'it must be {"version": "1.0.0", "agents": [...]}; check the path given by --agents, STDIO_BUS_AGENTS or the configuration',
  },
  credentials_unreadable: {
    exitCode: 2,
    wrong: (file) => `the credentials file ${file} cannot be used`,
    wayOut:
      'it must be {"version": "1.0.0", "agents": {"ID": {"env": {"NAME": "value"}}}}; "apiKey" needs "apiKeyEnv" beside it',
  },
  credentials_exposed: {
    exitCode: 2,
    wrong: (file) => `the credentials file ${file} can be read by others`,
    wayOut: 'chmod 600 the file, and own it yourself',
  },
  cache_unusable: {
    exitCode: 1,
    wrong: (folder) => `the cache folder ${folder} cannot be written`,
    wayOut: 'make it writable, or name another one ("registry": {"cache": DIR})',
  },
  busy: {
    exitCode: 1,
    wrong: (id) => `another process has been installing agent "${id}" for too long`,
    wayOut: 'wait for it or end it, then try again',
  },
  cancelled: {
    exitCode: 1,
    wrong: (id) => `the installation of ${id} was interrupted; nothing was installed`,
    wayOut: 'start it again',
  },
} as const satisfies Record<string, Row>

export type Reason = keyof typeof ROWS

export const REASONS = Object.keys(ROWS) as readonly Reason[]

export class RegistryError extends Error {
  readonly reason: Reason
  readonly exitCode: 1 | 2
  /** What the user can do about it. */
  readonly wayOut: string

  constructor(reason: Reason, subject: string, detail?: string, cause?: unknown) {
    const row: Row = ROWS[reason]
    const why = detail === undefined ? '' : ` (${printable(detail)})`
    super(`${row.wrong(printable(subject))}${why}; ${row.wayOut}`, cause === undefined ? undefined : { cause })
    this.name = 'RegistryError'
    this.reason = reason
    this.exitCode = row.exitCode
    this.wayOut = row.wayOut
  }
}

/** The shortest honest description of a failure of the world: its code when it has one. */
export function describeFailure(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const inner = error.cause instanceof Error ? error.cause : error
  const code = (inner as NodeJS.ErrnoException).code
  return code === undefined || inner.message.includes(code) ? inner.message : `${code} ${inner.message}`.trim()
}
