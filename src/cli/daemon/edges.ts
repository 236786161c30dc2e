/**
 * Where the world touches the bus: the control socket, the doors, the gateway and its adapters, the trace store.
 *
 * An exception there is told in the log and counted, its asker is answered, and the bus goes on. A mistake of the kernel
 * is none of these: with a broken table nothing can be promised to anybody, so it ends the bus loudly, wherever it is met.
 */
import type { Log } from './log.ts'

/** The kernel threw: what it has promised can no longer be relied on. */
export class KernelMistake extends Error {
  override readonly name = 'KernelMistake'

  constructor(cause: unknown) {
    super(`the kernel failed: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
  }
}

const MAX_STACK_LINES = 6

export class Edges {
  /** Exceptions so far. */
  failures = 0
  readonly #log: Pick<Log, 'write'>

  constructor(log: Pick<Log, 'write'>) {
    this.#log = log
  }

  report(edge: string, error: unknown): void {
    if (error instanceof KernelMistake) return crash(error)
    this.failures += 1
    this.#log.write('error', `an exception at an edge was caught: ${edge}`, { cause: describe(error) })
  }

  /** Does `act`; what it throws is told, and `otherwise` is what comes back in its place. */
  guard<T>(edge: string, act: () => T, otherwise: T): T {
    try {
      return act()
    } catch (error) {
      this.report(edge, error)
      return otherwise
    }
  }
}

/** Outside of every promise and every catch. */
function crash(error: KernelMistake): void {
  setImmediate(() => {
    throw error
  })
}

/** A parser quotes what it was given, and that belongs to a peer: then the place alone is told. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return typeof error
  const frames = (error.stack ?? '').split('\n').filter((line) => line.startsWith('    at '))
  const head = error instanceof SyntaxError ? error.name : `${error.name}: ${error.message}`
  return [head, ...frames.slice(0, MAX_STACK_LINES).map((line) => line.trim())].join(' ')
}
