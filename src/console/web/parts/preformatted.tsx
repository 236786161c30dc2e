/** Text as it is, in a box that scrolls and so can be reached by the keyboard. */
import type { ComponentChildren } from 'preact'

export function Preformatted({ kind, children }: { readonly kind?: string; readonly children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls
    <pre class={kind} tabIndex={0}>
      {children}
    </pre>
  )
}
