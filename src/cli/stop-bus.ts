/**
 * Tells a running bus to stop and waits until it has: what is outstanding is answered first, within its drain timeout.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { askControl } from '../console/control-client.ts'
import { isLive, type RunRecord } from '../console/running.ts'
import type { Status } from '../console/status.ts'

const LOOK_EVERY_MS = 50
/** A stop that takes longer is explained. */
const USUAL_MS = 1_500

export interface StopOptions {
  readonly now?: boolean
  /** Says why it takes a while. */
  readonly say: (sentence: string) => void
}

/** Resolves when nobody answers on its control socket any more: its doors are closed and its workers gone by then. */
export async function stopBus({ control }: RunRecord, { now, say }: StopOptions): Promise<number> {
  const { outstanding, pid } = (await askControl({ control }, 'status')) as Status
  await askControl({ control }, 'stop', { now: now === true })
  const sinceMs = performance.now()
  let isTold = false
  while (await isLive(control)) {
    if (!isTold && performance.now() - sinceMs > USUAL_MS) {
      const what = outstanding === 0 ? 'its workers' : `${outstanding} outstanding requests`
      say(`waiting for ${what}; Ctrl-C leaves it to end by itself, stdio-bus stop --now does not wait`)
      isTold = true
    }
    await sleep(LOOK_EVERY_MS)
  }
  return pid
}
