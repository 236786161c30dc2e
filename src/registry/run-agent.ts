/**
 * Runs a resolved agent in the place of this process: its stdin, stdout and stderr are ours, its exit code will be ours.
 *
 * It reads and writes nothing itself. The agent has its own process group; the signals that reach us go to that group,
 * and when the agent has ended nothing of the group is left.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { constants } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { describeFailure, RegistryError } from './errors.ts'
import type { ResolvedAgent } from './resolve.ts'

const FORWARDED = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const
/** After these the agent has to go; Ctrl-C may mean something else to it. */
const FINAL: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGHUP']
/** Contract 3.3: within a second of SIGTERM everything has ended. */
const GRACE_MS = 700
const POLL_MS = 20

/** Tells whoever guards groups against our own sudden death; returns what to call when the group has ended. */
export type GuardGroup = (groupId: number) => () => void

/** The exit code of the agent, or 128 and the number of the signal that ended it. */
export async function runAgent(
  agent: ResolvedAgent,
  inherited: NodeJS.ProcessEnv = process.env,
  guard: GuardGroup = () => () => {},
): Promise<number> {
  const child = spawn(agent.command, agent.args, {
    env: { ...inherited, ...agent.env },
    stdio: 'inherit',
    detached: true,
  })
  const exit = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>
  const release = child.pid === undefined ? () => {} : guard(child.pid)
  const stopForwarding = forwardSignals(child.pid)
  try {
    const [code, signal] = await exit
    return code ?? 128 + (signal === null ? 0 : constants.signals[signal])
  } catch (error) {
    throw new RegistryError('start_failed', agent.id, `${agent.command}: ${describeFailure(error)}`, error)
  } finally {
    if (child.pid !== undefined) await endGroup(child.pid)
    release()
    stopForwarding()
  }
}

function forwardSignals(groupId: number | undefined): () => void {
  if (groupId === undefined) return () => {}
  let timer: NodeJS.Timeout | undefined
  const listeners = FORWARDED.map((signal) => {
    const forward = () => {
      signalGroup(groupId, signal)
      if (FINAL.includes(signal)) timer ??= setTimeout(() => signalGroup(groupId, 'SIGKILL'), GRACE_MS)
    }
    process.on(signal, forward)
    return () => process.off(signal, forward)
  })
  return () => {
    clearTimeout(timer)
    for (const stop of listeners) stop()
  }
}

/** Ends what the agent has left behind: politely, then for good. */
async function endGroup(groupId: number): Promise<void> {
  const giveUpAtMs = Date.now() + GRACE_MS / 2
  for (let alive = signalGroup(groupId, 'SIGTERM'); alive; alive = signalGroup(groupId, 0)) {
    if (Date.now() > giveUpAtMs) {
      signalGroup(groupId, 'SIGKILL')
      return
    }
    await sleep(POLL_MS)
  }
}

/** Whether there was anybody to receive it. */
function signalGroup(groupId: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(-groupId, signal)
    return true
  } catch {
    return false
  }
}
