/**
 * What the owner of a bus tells it over its control socket beside questions: to stop, to start the workers of a pool anew,
 * to show its log.
 *
 * It decides nothing of routing. Whoever can open the control socket may do all of this (contract 8.6).
 */
import { type ControlCall, ControlError, type ControlMethods } from '../../console/control-server.ts'
import type { PoolId } from '../../kernel/vocabulary.ts'
import { CODE } from '../../wire/jsonrpc.ts'
import type { Log } from './log.ts'
import { readLogLine } from './log-fields.ts'

export interface Administered {
  readonly log: Log
  pools(): readonly PoolId[]
  /** `isAtOnce`: nothing outstanding is waited for. */
  stop(isAtOnce: boolean): void
  /** New workers take over; resolves with how many there are, and how many old ones still have something to do. */
  restart(pool: PoolId, isAtOnce: boolean): Promise<{ readonly workers: number; readonly retiring: number }>
}

const DEFAULT_LINES = 100
/** One answer is never longer: who reads slowly is let go (`control-server.ts`). */
const MAX_SHOWN_CHARS = 2 * 1024 * 1024

export function administrationMethods(bus: Administered): ControlMethods {
  return {
    stop: ({ params }) => {
      bus.stop(params['now'] === true)
      return { stopping: true, pid: process.pid }
    },
    restart: async ({ params }) => {
      const pool = knownPool(bus, params['pool'])
      return { pool, ...(await bus.restart(pool, params['now'] === true)) }
    },
    logs: (call) => showLog(bus, call),
  }
}

function knownPool(bus: Administered, name: unknown): PoolId {
  const pools = bus.pools()
  const pool = pools.find((id) => id === name)
  if (pool !== undefined) return pool
  const found = typeof name === 'string' ? `no pool ${JSON.stringify(name)}` : 'no pool was named'
  const message = `${found}: this bus has ${pools.join(', ')}`
  throw new ControlError(message, { reason: 'unknown_pool', pools }, CODE.invalidParams)
}

/** The last lines, and then, if they are followed, every line until the asker leaves. */
function showLog(bus: Administered, call: ControlCall): unknown {
  const { pool, lines, follow } = call.params
  const wanted = pool === undefined ? undefined : knownPool(bus, pool)
  const isWanted = (line: string): boolean => wanted === undefined || readLogLine(line)?.['pool'] === wanted
  const count = typeof lines === 'number' && Number.isInteger(lines) && lines >= 0 ? lines : DEFAULT_LINES
  const { recent } = bus.log
  for (const line of newest(recent.all().filter(isWanted), count)) call.emit(line)
  if (follow !== true) return { done: true }
  return new Promise((resolve) => {
    const leave = recent.follow((line) => {
      if (isWanted(line)) call.emit(line)
    })
    call.onLeave(() => {
      leave()
      resolve(undefined)
    })
  })
}

function newest(lines: readonly string[], count: number): readonly string[] {
  let chars = 0
  let first = lines.length
  while (first > 0 && lines.length - first < count) {
    chars += lines[first - 1]!.length
    if (chars > MAX_SHOWN_CHARS) break
    first--
  }
  return lines.slice(first)
}
