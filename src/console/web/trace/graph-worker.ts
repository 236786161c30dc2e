/** The thread on which graphs are laid out: a request in, where everything lies out. */
import { type LayoutRequest, layOutGraph } from './graph-layout.ts'

addEventListener('message', ({ data }: MessageEvent<LayoutRequest>) => {
  try {
    postMessage({ laidOut: layOutGraph(data) })
  } catch (error) {
    postMessage({ problem: error instanceof Error ? error.message : String(error) })
  }
})
