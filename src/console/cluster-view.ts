/** The nodes of a cluster as one of them sees them: their shape, a page for the terminal, and figures (contract 14.10). */
import { createColors } from 'picocolors'
import { printable } from '../wire/printable.ts'
import { formatTable } from './table.ts'

export interface ClusterPool {
  readonly id: string
  readonly ready: number
  readonly workers: number
  readonly outstanding: number
  readonly sessions: number
}

export interface ClusterNode {
  readonly node: string
  readonly state: 'ready' | 'leaving' | 'silent' | 'lost' | 'incompatible'
  readonly version: string | null
  readonly heard_ms: number
  readonly rtt_ms: number | null
  readonly streams: number
  readonly pools: readonly ClusterPool[]
}

export interface ClusterStatus {
  readonly cluster: string
  readonly node: string
  readonly nats: { readonly connected: boolean; readonly server: string | null; readonly directory: boolean }
  readonly nodes: readonly ClusterNode[]
}

/** Beside the nodes, what has passed between them. */
export interface ClusterFigures extends ClusterStatus {
  readonly bytes: { readonly sent: number; readonly received: number }
  readonly frames: { readonly sent: number; readonly received: number }
  readonly resent_bytes: number
  readonly stalled: number
  readonly lost: number
  readonly junk: Readonly<Record<string, number>>
}

const COLUMNS = ['node', 'state', 'version', 'heard', 'rtt', 'streams', 'pools'] as const

export function formatCluster(status: ClusterStatus, { color }: { readonly color: boolean }): string {
  const colors = createColors(color)
  const { server, connected, directory } = status.nats
  const way = connected ? colors.green('connected') : colors.red('not connected')
  const head = `${colors.bold(`cluster ${printable(status.cluster)}`)}  node ${printable(status.node)}  nats ${printable(server ?? '-')} ${way}${directory ? '' : '  no directory of sessions'}`
  const rows = status.nodes.map((node) => [
    printable(node.node),
    node.state,
    printable(node.version ?? '-'),
    `${node.heard_ms} ms`,
    node.rtt_ms === null ? '-' : `${node.rtt_ms.toFixed(2)} ms`,
    String(node.streams),
    node.pools.map(({ id, ready, workers }) => `${printable(id)} ${ready}/${workers}`).join(', ') || '-',
  ])
  const paint = (text: string, column: number): string =>
    column === 1 && /lost|incompatible/.test(text) ? colors.red(text) : text
  const table = rows.length === 0 ? [colors.dim('no other node')] : formatTable(COLUMNS, rows, colors, paint)
  return `${[head, '', ...table].join('\n')}\n`
}
