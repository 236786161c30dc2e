/** How a worker is started, and why it could not be: types only. */

export interface Launch {
  readonly command: string
  readonly args: readonly string[]
  /** The whole environment of the worker; nothing is added to it. */
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
  /** What its three standard descriptors are; left out: what the runtime makes. */
  readonly pipes?: PipeKind
}

/** `fifo`: real pipes, so that the worker can open `/dev/stdin`, `/dev/stdout` and `/dev/stderr` by name. */
export type PipeKind = 'default' | 'fifo'

/** Names neither arguments nor environment: secrets live there. */
export interface SpawnFailure {
  /** The system's code, such as `ENOENT`. */
  readonly code: string
  /** A sentence for people: what is wrong and what to do. */
  readonly reason: string
  /** Trying again will not mend it. */
  readonly again?: 'never'
}

export interface Exit {
  readonly isClean: boolean
  readonly how: { readonly exitCode: number | null; readonly signal: NodeJS.Signals | null }
}
