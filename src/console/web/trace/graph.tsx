/**
 * The calls of a trace as a graph (contract 15.9): who called whom, drawn as SVG once it is known where everything lies.
 *
 * Wheel, drag and pinch, buttons and keys change what part of it is seen; that moves the picture and draws nothing anew.
 */
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { Failed, Loading } from '../parts/state.tsx'
import { go, hrefOf } from '../router.ts'
import { brief } from '../text.ts'
import type { LaidOut, Point } from './graph-layout.ts'
import { type CallGraph, type GraphNode, graphOf } from './grouping.ts'
import { layOut } from './layouts.ts'
import { NODE } from './node-size.ts'
import { fitInto, move, type Size, type Viewpoint, zoomAt } from './pan-zoom.ts'
import { type Call, MARKS } from './trace.ts'

export interface GraphProps {
  readonly calls: readonly Call[]
  readonly chosen: string | undefined
  /** The address of a call below the console. */
  readonly pathOf: (call: number) => string
  readonly close: () => void
}

const ZOOM_STEP = 1.25
const PAN_PX = 60
/** What fits into a node in its fonts. */
const TITLE_CHARS = 22
const DETAIL_CHARS = 29

export function Graph(props: GraphProps) {
  const { calls } = props
  const graph = useMemo(() => graphOf(calls), [calls])
  const { laidOut, error, again } = useLayout(graph)
  if (error !== undefined) return <Failed error={error} retry={again} />
  if (laidOut === undefined) return <Loading what="the graph" />
  return <Canvas {...props} graph={laidOut.graph} laidOut={laidOut.places} />
}

interface Layout {
  readonly graph: CallGraph
  readonly places: LaidOut
}

/** The last one stays until the next is there. */
function useLayout(graph: CallGraph): { laidOut: Layout | undefined; error: unknown; again: () => void } {
  const [laidOut, setLaidOut] = useState<Layout>()
  const [error, setError] = useState<unknown>()
  const [turn, setTurn] = useState(0)
  useEffect(() => {
    let isWanted = true
    setError(undefined)
    layOut({ nodes: graph.nodes.map(({ id }) => id), edges: graph.edges.map(({ from, to }) => ({ from, to })) }).then(
      (places) => isWanted && setLaidOut({ graph, places }),
      (problem) => isWanted && setError(problem),
    )
    return () => {
      isWanted = false
    }
  }, [graph, turn])
  return { laidOut, error, again: () => setTurn((before) => before + 1) }
}

interface CanvasProps extends GraphProps {
  readonly graph: CallGraph
  readonly laidOut: LaidOut
}

function Canvas({ graph, laidOut, chosen, pathOf, close }: CanvasProps) {
  const box = useRef<HTMLDivElement>(null)
  const picture = useRef<SVGGElement>(null)
  const { zoom, pan, fitAll } = useViewpoint(box, picture, laidOut)
  const press = (event: KeyboardEvent): void => {
    const acts: Record<string, () => void> = {
      '+': () => zoom(ZOOM_STEP),
      '=': () => zoom(ZOOM_STEP),
      '-': () => zoom(1 / ZOOM_STEP),
      '0': fitAll,
      ArrowLeft: () => pan(PAN_PX, 0),
      ArrowRight: () => pan(-PAN_PX, 0),
      ArrowUp: () => pan(0, PAN_PX),
      ArrowDown: () => pan(0, -PAN_PX),
      Escape: close,
    }
    const act = acts[event.key]
    if (act === undefined || event.ctrlKey || event.metaKey || event.altKey) return
    event.preventDefault()
    act()
  }
  return (
    <>
      <div class="row graph-tools">
        <button type="button" class="small" onClick={() => zoom(ZOOM_STEP)}>
          Zoom in
        </button>
        <button type="button" class="small" onClick={() => zoom(1 / ZOOM_STEP)}>
          Zoom out
        </button>
        <button type="button" class="small" onClick={fitAll}>
          Fit
        </button>
        <span class="quiet">
          {graph.isGrouped
            ? `Grouped by agent: a node leads to its failed or longest call.${leftOutNote(graph)}`
            : 'Wheel, drag, pinch; + − 0 and arrows.'}
        </span>
      </div>
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms */}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard moves in it */}
      <div class="graph-box" ref={box} role="group" aria-label="Graph of calls" tabIndex={0} onKeyDown={press}>
        <svg class="graph" role="presentation">
          <g ref={picture}>
            {graph.edges.map(({ from, to, isError, count }, index) => (
              <Edge key={`${from} ${to}`} points={laidOut.edges[index]!} isError={isError} count={count} />
            ))}
            {graph.nodes.map((node, index) => (
              <Node
                key={node.id}
                node={node}
                at={laidOut.nodes[index]!}
                isChosen={!graph.isGrouped && String(node.call) === chosen}
                path={pathOf(node.call)}
              />
            ))}
          </g>
        </svg>
      </div>
    </>
  )
}

function leftOutNote({ leftOut }: CallGraph): string {
  return leftOut === 0 ? '' : ` ${leftOut.toLocaleString('en')} weaker connections are not drawn.`
}

function Edge({
  points,
  isError,
  count,
}: {
  readonly points: readonly Point[]
  readonly isError: boolean
  readonly count: number
}) {
  const middle = points[Math.floor(points.length / 2)]!
  return (
    <>
      <path class={isError ? 'edge error' : 'edge'} d={curveOf(points)} />
      {count > 1 && (
        <text class="edge-count" x={middle.x + 4} y={middle.y - 4}>
          {count.toLocaleString('en')}×
        </text>
      )}
    </>
  )
}

/** Through the middles between the points, bent at the points. */
function curveOf(points: readonly Point[]): string {
  const [first, ...rest] = points
  let path = `M${first!.x} ${first!.y}`
  for (const [index, point] of rest.entries()) {
    const next = rest[index + 1]
    if (next === undefined) path += `L${point.x} ${point.y}`
    else path += `Q${point.x} ${point.y} ${(point.x + next.x) / 2} ${(point.y + next.y) / 2}`
  }
  return path
}

interface NodeProps {
  readonly node: GraphNode
  readonly at: Point
  readonly isChosen: boolean
  readonly path: string
}

function Node({ node, at, isChosen, path }: NodeProps) {
  const { title, detail, status } = node
  const mark = status === 'ok' ? '' : `${MARKS[status]} `
  const label = `${brief(title, 200)}, ${brief(detail, 200)}${status === 'ok' ? '' : `, ${status}`}`
  return (
    <g transform={`translate(${at.x - NODE.width / 2} ${at.y - NODE.height / 2})`}>
      <title>{label}</title>
      <a
        class={`node ${status} ${isChosen ? 'chosen' : ''}`}
        href={hrefOf(path)}
        aria-current={isChosen ? 'true' : undefined}
        onClick={(event) => {
          if (event.ctrlKey || event.metaKey || event.shiftKey) return
          event.preventDefault()
          go(path)
        }}
      >
        <rect width={NODE.width} height={NODE.height} rx="8" />
        <text class="node-title" x="12" y="22">
          {brief(mark + title, TITLE_CHARS)}
        </text>
        <text class="node-detail" x="12" y="41">
          {brief(detail, DETAIL_CHARS)}
        </text>
      </a>
    </g>
  )
}

interface Mover {
  readonly zoom: (factor: number) => void
  readonly pan: (byX: number, byY: number) => void
  readonly fitAll: () => void
}

/** Fits what is new, unless somebody has moved it, and moves it as pointers and wheel say. */
function useViewpoint(
  box: { readonly current: HTMLDivElement | null },
  picture: { readonly current: SVGGElement | null },
  size: Size,
): Mover {
  const view = useRef<Viewpoint>({ x: 0, y: 0, scale: 1 })
  const isMoved = useRef(false)
  const set = useCallback(
    (next: Viewpoint): void => {
      isMoved.current = true
      view.current = next
      picture.current?.setAttribute('transform', `translate(${next.x} ${next.y}) scale(${next.scale})`)
    },
    [picture],
  )
  const sizeOfBox = (): Size => ({ width: box.current?.clientWidth ?? 0, height: box.current?.clientHeight ?? 0 })
  const fitAll = useCallback(() => {
    set(fitInto(size, sizeOfBox()))
    isMoved.current = false
  }, [size.width, size.height, set])
  const fitUnmoved = useCallback(() => {
    if (!isMoved.current) fitAll()
  }, [fitAll])
  useLayoutEffect(fitUnmoved, [fitUnmoved])
  useEffect(() => {
    const observer = new ResizeObserver(fitUnmoved)
    observer.observe(box.current!)
    return () => observer.disconnect()
  }, [fitUnmoved, box])
  useEffect(() => followPointers(box.current!, () => view.current, set), [box, set])
  return {
    fitAll,
    pan: (byX, byY) => set(move(view.current, byX, byY)),
    zoom: (factor) => {
      const { width, height } = sizeOfBox()
      set(zoomAt(view.current, { x: width / 2, y: height / 2 }, factor))
    },
  }
}

const DRAG_PX = 4

/** One pointer drags, two pinch, the wheel zooms; what was dragged is no click. */
function followPointers(element: HTMLElement, look: () => Viewpoint, set: (view: Viewpoint) => void): () => void {
  const pointers = new Map<number, Point>()
  let draggedPx = 0
  const at = ({ clientX, clientY }: MouseEvent): Point => {
    const { left, top } = element.getBoundingClientRect()
    return { x: clientX - left, y: clientY - top }
  }
  const handlers: Record<string, (event: never) => void> = {
    wheel: (event: WheelEvent) => {
      event.preventDefault()
      const px = event.deltaMode === 1 ? event.deltaY * 16 : event.deltaY
      set(zoomAt(look(), at(event), Math.exp(-Math.max(-200, Math.min(200, px)) / 400)))
    },
    pointerdown: (event: PointerEvent) => {
      if (pointers.size === 0) draggedPx = 0
      pointers.set(event.pointerId, at(event))
    },
    pointermove: (event: PointerEvent) => {
      const before = pointers.get(event.pointerId)
      if (before === undefined) return
      const now = at(event)
      const [other] = [...pointers].filter(([id]) => id !== event.pointerId).map(([, point]) => point)
      pointers.set(event.pointerId, now)
      draggedPx += distance(before, now)
      if (draggedPx > DRAG_PX && !element.hasPointerCapture(event.pointerId)) element.setPointerCapture(event.pointerId)
      if (other === undefined) return set(move(look(), now.x - before.x, now.y - before.y))
      const middle = { x: (now.x + other.x) / 2, y: (now.y + other.y) / 2 }
      const was = { x: (before.x + other.x) / 2, y: (before.y + other.y) / 2 }
      const zoomed = zoomAt(look(), was, distance(now, other) / Math.max(1, distance(before, other)))
      set(move(zoomed, middle.x - was.x, middle.y - was.y))
    },
    pointerup: (event: PointerEvent) => pointers.delete(event.pointerId),
    pointercancel: (event: PointerEvent) => pointers.delete(event.pointerId),
    lostpointercapture: (event: PointerEvent) => pointers.delete(event.pointerId),
    dragstart: (event: Event) => event.preventDefault(),
    click: (event: MouseEvent) => {
      if (draggedPx <= DRAG_PX) return
      event.preventDefault()
      event.stopPropagation()
    },
  }
  for (const [name, handler] of Object.entries(handlers))
    element.addEventListener(name, handler as EventListener, { capture: name === 'click', passive: false })
  return () => {
    for (const [name, handler] of Object.entries(handlers))
      element.removeEventListener(name, handler as EventListener, { capture: name === 'click' })
  }
}

function distance(one: Point, other: Point): number {
  return Math.hypot(one.x - other.x, one.y - other.y)
}
