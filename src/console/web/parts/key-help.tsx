/** The keys that work everywhere: `/` goes to the filter, `?` lists them, Esc puts this away (contract 15.15). */
import { signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'

const isOpen = signal(false)

const KEYS = [
  ['/', 'go to the filter of this view'],
  ['↑ ↓', 'move in a list or a tree'],
  ['← →', 'fold and unfold in a tree'],
  ['Enter', 'open what is chosen'],
  ['+ − 0', 'zoom a graph, or fit it'],
  ['Esc', 'close, or leave the filter'],
  ['?', 'this list'],
] as const

export function KeyHelp() {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      const isTyping = (event.target as Element).closest?.('input, textarea, select') !== null
      if (event.key === 'Escape' && isTyping) return (event.target as HTMLElement).blur()
      if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return
      if (event.key === '?') isOpen.value = true
      if (event.key !== '/') return
      const filter = document.querySelector<HTMLElement>('[data-filter]')
      if (filter === null) return
      event.preventDefault()
      filter.focus()
    }
    document.addEventListener('keydown', press)
    return () => document.removeEventListener('keydown', press)
  }, [])
  const wanted = isOpen.value
  useEffect(() => {
    if (wanted) dialog.current?.showModal()
    else dialog.current?.close()
  }, [wanted])
  return (
    <dialog
      ref={dialog}
      aria-labelledby="keys-title"
      onClose={() => {
        isOpen.value = false
      }}
    >
      <h2 id="keys-title">Keys</h2>
      <dl class="keys">
        {KEYS.map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </dialog>
  )
}
