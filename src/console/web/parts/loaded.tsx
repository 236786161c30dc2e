/** Something that is asked for, once and whenever it is wanted again, with its states. */
import { useCallback, useEffect, useState } from 'preact/hooks'
import { ApiFailure, ask } from '../api.ts'

export interface Loaded<T> {
  readonly value: T | undefined
  readonly error: unknown
  readonly again: () => void
}

/** `path` undefined: nothing is asked for. */
export function useLoaded<T>(path: string | undefined): Loaded<T> {
  const [state, setState] = useState<{ path: string | undefined; value?: T; error?: unknown }>({ path })
  const [turn, setTurn] = useState(0)
  const again = useCallback(() => setTurn((before) => before + 1), [])
  useEffect(() => {
    if (path === undefined) return
    const abort = new AbortController()
    ask<T>(path, { signal: abort.signal }).then(
      (value) => setState({ path, value }),
      (error) => {
        if (abort.signal.aborted) return
        if (!(error instanceof ApiFailure && error.status === 401))
          setState((before) => ({ ...(before.path === path ? before : { path }), error }))
      },
    )
    return () => abort.abort()
  }, [path, turn])
  const isOfPath = state.path === path
  return { value: isOfPath ? state.value : undefined, error: isOfPath ? state.error : undefined, again }
}
