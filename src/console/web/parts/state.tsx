/** What stands where there is nothing to show yet, nothing at all, or something went wrong: each looks different (contract 15.15). */
import type { ComponentChildren } from 'preact'
import { shown } from '../text.ts'

export function Loading({ what }: { readonly what: string }) {
  return (
    <p class="state loading" role="status">
      <span class="spinner" aria-hidden="true" /> Loading {what} …
    </p>
  )
}

export function Empty({ title, children }: { readonly title: string; readonly children?: ComponentChildren }) {
  return (
    <div class="state empty">
      <p class="state-title">{title}</p>
      {children}
    </div>
  )
}

export function Failed({ error, retry }: { readonly error: unknown; readonly retry: () => void }) {
  return (
    <div class="state failed" role="alert">
      <p class="state-title">This could not be loaded.</p>
      <p>{shown(error instanceof Error ? error.message : error)}</p>
      <button type="button" onClick={retry}>
        Retry
      </button>
    </div>
  )
}
