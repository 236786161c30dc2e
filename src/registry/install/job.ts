/** What every way of installing is given, and what it reports while it works. */

import type { ArchiveLimits } from '../archive/tree.ts'
import type { AgentEntry } from '../entry.ts'

export interface Progress {
  readonly id: string
  readonly version: string
  readonly phase: 'waiting' | 'downloading' | 'unpacking' | 'installing' | 'installed'
  readonly doneBytes?: number
  readonly totalBytes?: number | undefined
}

export interface InstallJob {
  readonly entry: AgentEntry
  readonly cacheDir: string
  readonly signal?: AbortSignal | undefined
  readonly onProgress: (progress: Progress) => void
  readonly onWarning: (text: string) => void
  readonly timeoutMs: number
  readonly maxArchiveBytes: number
  readonly archiveLimits: ArchiveLimits
}

export function report(job: InstallJob, phase: Progress['phase'], doneBytes?: number, totalBytes?: number): void {
  const { id, version } = job.entry
  job.onProgress({ id, version, phase, ...(doneBytes !== undefined && { doneBytes, totalBytes }) })
}
