/** Tabs: one of several views; arrows move between them. Whoever uses them draws the panels, with the ids that are given here. */
import { useRef } from 'preact/hooks'

export interface TabsProps {
  readonly label: string
  /** By the id of their panel. */
  readonly tabs: readonly (readonly [id: string, title: string])[]
  readonly chosen: string
  readonly choose: (id: string) => void
}

export function Tabs({ label, tabs, chosen, choose }: TabsProps) {
  const list = useRef<HTMLDivElement>(null)
  const press = (event: KeyboardEvent): void => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
    if (step === undefined) return
    const at = tabs.findIndex(([id]) => id === chosen)
    const next = (at + step + tabs.length) % tabs.length
    choose(tabs[next]![0])
    list.current!.querySelectorAll<HTMLElement>('[role=tab]')[next]!.focus()
  }
  return (
    <div class="tabs" role="tablist" aria-label={label} ref={list} onKeyDown={press}>
      {tabs.map(([id, title]) => (
        <button
          key={id}
          type="button"
          role="tab"
          id={`tab-${id}`}
          aria-controls={id}
          aria-selected={id === chosen}
          tabIndex={id === chosen ? 0 : -1}
          onClick={() => choose(id)}
        >
          {title}
        </button>
      ))}
    </div>
  )
}
