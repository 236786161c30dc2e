/** A button that copies a text, and says whether it could. */
import { useEffect, useState } from 'preact/hooks'

const SAID_MS = 2_000

export function Copy({ title, text }: { readonly title: string; readonly text: string }) {
  const [said, setSaid] = useState('')
  useEffect(() => {
    if (said === '') return
    const timer = setTimeout(() => setSaid(''), SAID_MS)
    return () => clearTimeout(timer)
  }, [said])
  const copy = (): void => {
    // Where the browser has no clipboard for us the promise is missing altogether.
    Promise.resolve()
      .then(() => navigator.clipboard.writeText(text))
      .then(
        () => setSaid('Copied'),
        () => setSaid('The browser does not let us copy'),
      )
  }
  return (
    <>
      <button type="button" class="small" onClick={copy}>
        {title}
      </button>
      <span class="quiet said-copy" role="status">
        {said}
      </span>
    </>
  )
}
