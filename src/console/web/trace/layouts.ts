/**
 * Has graphs laid out by a thread of their own, which is fetched when the first is wanted.
 *
 * One at a time, and of those that wait only the newest is laid out: a trace that goes on would otherwise be laid out again and again
 * for nobody.
 */
import { trustedAddress } from '../trusted-address.ts'
import type { LaidOut, LayoutRequest } from './graph-layout.ts'

interface Wish {
  readonly request: LayoutRequest
  resolve(laidOut: LaidOut): void
  reject(problem: Error): void
}

/** Put in by the build, which names it by its content. */
declare const GRAPH_WORKER: string

let worker: Worker | undefined
let underWay: Wish | undefined
let next: Wish | undefined

export function layOut(request: LayoutRequest): Promise<LaidOut> {
  return new Promise((resolve, reject) => {
    next?.reject(new Error('Another graph is wanted by now.'))
    next = { request, resolve, reject }
    if (underWay === undefined) begin()
  })
}

function begin(): void {
  underWay = next
  next = undefined
  if (underWay === undefined) return
  worker ??= open()
  worker.postMessage(underWay.request)
}

function open(): Worker {
  const opened = new Worker(trustedAddress(GRAPH_WORKER))
  opened.onmessage = ({ data }: MessageEvent<{ laidOut?: LaidOut; problem?: string }>) => {
    if (data.laidOut !== undefined) underWay?.resolve(data.laidOut)
    else underWay?.reject(new Error(`The graph could not be laid out: ${data.problem}`))
    begin()
  }
  opened.onerror = () => fail(opened)
  return opened
}

/** It could not be loaded: the next wish tries again. */
function fail(opened: Worker): void {
  opened.terminate()
  worker = undefined
  underWay?.reject(new Error('What lays out the graph could not be loaded.'))
  begin()
}
