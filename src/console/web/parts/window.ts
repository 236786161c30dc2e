/** Which rows of one height are seen in a box that scrolls: only these are drawn (contract 15.15). */
import type { RefObject } from 'preact'
import { useEffect, useState } from 'preact/hooks'

const MARGIN_ROWS = 10

export interface Seen {
  readonly first: number
  /** Behind the last. */
  readonly last: number
}

export function useWindow(
  box: RefObject<HTMLElement | null>,
  count: number,
  rowHeight: number,
  looked?: (element: HTMLElement) => void,
): Seen {
  const [view, setView] = useState({ top: 0, height: 600 })
  useEffect(() => {
    const element = box.current!
    const look = (): void => {
      setView({ top: element.scrollTop, height: element.clientHeight })
      looked?.(element)
    }
    look()
    const observer = new ResizeObserver(look)
    observer.observe(element)
    element.addEventListener('scroll', look, { passive: true })
    return () => {
      observer.disconnect()
      element.removeEventListener('scroll', look)
    }
  }, [box, rowHeight, looked])
  return {
    first: Math.max(0, Math.min(count, Math.floor(view.top / rowHeight)) - MARGIN_ROWS),
    last: Math.min(count, Math.ceil((view.top + view.height) / rowHeight) + MARGIN_ROWS),
  }
}

/** Scrolls as little as needed to have a row in view. */
export function reveal(element: HTMLElement, row: number, rowHeight: number): void {
  const top = row * rowHeight
  if (top < element.scrollTop) element.scrollTop = top
  else if (top + rowHeight > element.scrollTop + element.clientHeight)
    element.scrollTop = top + rowHeight - element.clientHeight
}

/** How far a key moves in a list of so many, or nothing. */
export function stepOf(key: string, count: number): number | undefined {
  return { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -count, End: count }[key]
}
