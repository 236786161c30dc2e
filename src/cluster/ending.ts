/** Why a stream has ended, as its other side is told (contract 14.7); what cannot be read is an end without a reason. */
import { CLUSTER } from './limits.ts'

export interface StreamEnding {
  /** `closed`: whoever was there has gone; `lost`: the node has, or nothing is heard of the stream. */
  readonly reason: 'closed' | 'shutting_down' | 'refused' | 'lost'
  readonly why?: string
}

const REASONS: ReadonlySet<unknown> = new Set<StreamEnding['reason']>(['closed', 'shutting_down', 'refused'])

export const LOST: StreamEnding = { reason: 'lost' }

export function writeEnding({ reason, why }: StreamEnding): Buffer {
  return Buffer.from(JSON.stringify({ reason, ...(why === undefined ? {} : { why: why.slice(0, 200) }) }))
}

export function readEnding(bytes: Buffer): StreamEnding {
  if (bytes.length > CLUSTER.maxReasonBytes) return { reason: 'closed' }
  try {
    const { reason, why } = JSON.parse(bytes.toString('utf8')) as Record<string, unknown>
    if (!REASONS.has(reason)) return { reason: 'closed' }
    return { reason: reason as StreamEnding['reason'], ...(typeof why === 'string' ? { why: why.slice(0, 200) } : {}) }
  } catch {
    return { reason: 'closed' }
  }
}
