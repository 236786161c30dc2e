/** One call of what is chosen, from its beginning to its end; it is cancelled when the view goes. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Properties } from '../schema/value.ts'
import type { Answer, McpClient, Progress } from './mcp-client.ts'

export type CallState =
  | { readonly phase: 'idle' }
  | { readonly phase: 'running'; readonly sinceMs: number; readonly progress: Progress | undefined }
  | { readonly phase: 'done'; readonly answer: Answer; readonly tookMs: number }
  | { readonly phase: 'failed'; readonly error: unknown; readonly tookMs: number }
  | { readonly phase: 'cancelled'; readonly tookMs: number }

export interface Call {
  readonly state: CallState
  readonly start: (client: McpClient, method: string, params: Properties) => void
  readonly cancel: () => void
}

export function useCall(): Call {
  const [state, setState] = useState<CallState>({ phase: 'idle' })
  const running = useRef<AbortController | undefined>(undefined)
  useEffect(() => () => running.current?.abort(), [])

  const start: Call['start'] = (client, method, params) => {
    if (running.current !== undefined) return
    const abort = new AbortController()
    running.current = abort
    const sinceMs = performance.now()
    const onProgress = (progress: Progress): void => {
      if (running.current === abort) setState({ phase: 'running', sinceMs, progress })
    }
    const end = (ended: (tookMs: number) => CallState): void => {
      running.current = undefined
      setState(ended(performance.now() - sinceMs))
    }
    setState({ phase: 'running', sinceMs, progress: undefined })
    client.call(method, params, { signal: abort.signal, onProgress }).then(
      (answer) => end((tookMs) => ({ phase: 'done', answer, tookMs })),
      (error) =>
        end((tookMs) => (abort.signal.aborted ? { phase: 'cancelled', tookMs } : { phase: 'failed', error, tookMs })),
    )
  }
  return { state, start, cancel: () => running.current?.abort() }
}
