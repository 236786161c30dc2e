/** A list of rows of one height that draws what is seen, however long it is (contract 15.15). */
import type { ComponentChildren } from 'preact'
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { reveal, stepOf, useWindow } from './window.ts'

export interface RowsProps<T> {
  readonly label: string
  readonly items: readonly T[]
  readonly keyOf: (item: T) => string | number
  readonly rowHeight: number
  readonly render: (item: T) => ComponentChildren
  /** Whoever is at the end stays there when more comes. */
  readonly isPinnedToEnd?: boolean
  readonly onOpen?: (item: T) => void
  /** The end is near: more is wanted. */
  readonly onEnd?: (() => void) | undefined
  /** The beginning is near: more is wanted before it. */
  readonly onStart?: (() => void) | undefined
}

export function Rows<T>(props: RowsProps<T>) {
  const { label, items, keyOf, rowHeight, render, isPinnedToEnd = false, onOpen, onEnd, onStart } = props
  const box = useRef<HTMLDivElement>(null)
  const [chosen, setChosen] = useState<string | number>()
  const wasAtEnd = useRef(isPinnedToEnd)
  /** The row at the top, which stays there when others come before it. */
  const top = useRef<{ items: readonly T[]; key: string | number; index: number } | undefined>(undefined)
  const looked = useCallback(
    (element: HTMLElement) => {
      wasAtEnd.current = element.scrollTop + element.clientHeight >= element.scrollHeight - rowHeight
    },
    [rowHeight],
  )
  const { first, last } = useWindow(box, items.length, rowHeight, looked)

  useLayoutEffect(() => {
    const element = box.current!
    if (isPinnedToEnd && wasAtEnd.current) element.scrollTop = element.scrollHeight
  }, [items.length, isPinnedToEnd])
  useLayoutEffect(() => {
    const element = box.current!
    const before = top.current
    const index = Math.min(items.length - 1, Math.floor(element.scrollTop / rowHeight))
    const staysWhereItIs = isPinnedToEnd ? !wasAtEnd.current : element.scrollTop > 0
    if (staysWhereItIs && before !== undefined && before.items !== items && before.index === index) {
      const now = items.findIndex((item) => keyOf(item) === before.key)
      if (now > before.index || (isPinnedToEnd && now >= 0)) element.scrollTop += (now - before.index) * rowHeight
    }
    const at = Math.max(0, Math.min(items.length - 1, Math.floor(element.scrollTop / rowHeight)))
    top.current = items.length === 0 ? undefined : { items, key: keyOf(items[at]!), index: at }
  })
  const isNearEnd = last >= items.length
  useEffect(() => {
    if (isNearEnd) onEnd?.()
  }, [isNearEnd, items.length, onEnd])
  // Whoever is at the end of a list that is longer than what is seen looks at its end.
  const isNearStart = first === 0 && (isNearEnd || !wasAtEnd.current)
  useEffect(() => {
    if (isNearStart) onStart?.()
  }, [isNearStart, items.length, onStart])

  const press = (event: KeyboardEvent): void => {
    const at = items.findIndex((item) => keyOf(item) === chosen)
    if (event.key === 'Enter' && at >= 0 && event.target === box.current) return onOpen?.(items[at]!)
    const step = stepOf(event.key, items.length)
    if (step === undefined || items.length === 0) return
    event.preventDefault()
    const next = Math.min(items.length - 1, Math.max(0, at + step))
    setChosen(keyOf(items[next]!))
    reveal(box.current!, next, rowHeight)
  }

  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and the keyboard moves in it
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms
    <div class="rows" ref={box} role="group" aria-label={label} tabIndex={0} onKeyDown={press}>
      <ul class="rows-space" style={{ height: `${items.length * rowHeight}px` }}>
        {items.slice(first, last).map((item, index) => (
          <li
            key={keyOf(item)}
            class={keyOf(item) === chosen ? 'rows-row chosen' : 'rows-row'}
            style={{ top: `${(first + index) * rowHeight}px`, height: `${rowHeight}px` }}
          >
            {render(item)}
          </li>
        ))}
      </ul>
    </div>
  )
}
