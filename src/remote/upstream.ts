/**
 * What every kind of upstream has in common: how it is named, what a connection to it is, and how it fails. Types, and one
 * error.
 *
 * `why` is made of our own words and of codes of the system: nothing of a header, a token or a query is in it, whatever the
 * other side has said.
 */
import type { Duplex } from 'node:stream'
import type { TlsFiles } from '../host/tls-files.ts'

export interface Upstream {
  readonly url: URL
  /** References resolved: they may hold secrets. */
  readonly headers: Readonly<Record<string, string>>
  readonly token?: string
  /** Of another bus. */
  readonly pool?: string
  /** Paths. */
  readonly tls: TlsFiles
  readonly connectTimeoutMs: number
  /** The longest message that is taken from it. */
  readonly maxMessageBytes: number
  /** Of this bus; left out: whoever connects is none. */
  readonly busId?: string
}

/** The ids of buses through which clients came, without our own. */
export type Via = readonly string[]

/** What a connection is begun with, and whom it tells. */
export interface Opening {
  readonly vias: readonly Via[]
  /** Aborted: it is not wanted any more. */
  readonly signal: AbortSignal
  /** It is of no use any more; told once, after it was handed out. What it said before is still in its stream. */
  readonly lost: (failure: UpstreamFailure) => void
  /** A sentence for people, printable. */
  readonly note: (sentence: string) => void
}

export interface Connection {
  /** Whole lines go in; lines come out. Its end is the end of the connection. */
  readonly stream: Duplex
  passOn(via: Via): void
}

/** One attempt; fails with UpstreamFailure. */
export type Connect = (upstream: Upstream, opening: Opening) => Promise<Connection>

export class UpstreamFailure extends Error {
  override readonly name = 'UpstreamFailure'
  readonly why: string
  /** It does not want us, or we do not trust it: soon it would be the same. */
  readonly isRefusal: boolean

  constructor(why: string, options: { readonly isRefusal?: boolean; readonly cause?: unknown } = {}) {
    super(why, { cause: options.cause })
    this.why = why
    this.isRefusal = options.isRefusal === true
  }
}

export const BROKEN_OFF = 'it broke the connection off'
