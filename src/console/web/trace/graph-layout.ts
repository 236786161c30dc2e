/** Where nodes and edges lie: dagre decides. Runs off the main thread (contract 15.9). */
import { Graph, layout } from '@dagrejs/dagre'
import { NODE } from './node-size.ts'

export interface LayoutRequest {
  readonly nodes: readonly string[]
  readonly edges: readonly { readonly from: string; readonly to: string }[]
}

export interface Point {
  readonly x: number
  readonly y: number
}

export interface LaidOut {
  readonly width: number
  readonly height: number
  /** The middle of each node, in the order of the request. */
  readonly nodes: readonly Point[]
  readonly edges: readonly (readonly Point[])[]
}

const GAP = { nodesep: 20, ranksep: 44, marginx: 12, marginy: 12 } as const
/** Beyond so many beside each other a graph that goes down is too wide to be read. */
const MAX_ABREAST = 6

export function layOutGraph({ nodes, edges }: LayoutRequest): LaidOut {
  const graph = new Graph()
  graph.setGraph({ ...GAP, rankdir: isWide(edges, nodes.length) ? 'LR' : 'TB' })
  graph.setDefaultEdgeLabel(() => ({}))
  for (const id of nodes) graph.setNode(id, { ...NODE })
  for (const { from, to } of edges) graph.setEdge(from, to, {})
  layout(graph)
  const { width = NODE.width, height = NODE.height } = graph.graph() as { width?: number; height?: number }
  return {
    width,
    height,
    nodes: nodes.map((id) => pointOf(graph.node(id) as unknown as Point)),
    edges: edges.map(({ from, to }) => (graph.edge(from, to) as unknown as { points: Point[] }).points.map(pointOf)),
  }
}

function pointOf({ x, y }: Point): Point {
  return { x: Math.round(x), y: Math.round(y) }
}

function isWide(edges: LayoutRequest['edges'], nodeCount: number): boolean {
  const below = new Map<string, number>()
  for (const { from } of edges) below.set(from, (below.get(from) ?? 0) + 1)
  return Math.max(nodeCount - edges.length, ...below.values()) > MAX_ABREAST
}
