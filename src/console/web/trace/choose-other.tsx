/** Chooses the trace to compare with: from the newest of the same method, or by a filter. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { TraceRow } from '../pages/traces.tsx'
import { useLoaded } from '../parts/loaded.tsx'
import { Empty, Failed, Loading } from '../parts/state.tsx'
import { hrefOf, pathOf } from '../router.ts'
import type { Summary } from './trace.ts'

const MOST = 30
const TYPING_MS = 200

export interface ChooseProps {
  readonly trace: string
  readonly method: string | undefined
  readonly close: () => void
}

export function ChooseOther({ trace, method, close }: ChooseProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  const [typed, setTyped] = useState('')
  const [text, setText] = useState('')
  useEffect(() => dialog.current?.showModal(), [])
  useEffect(() => {
    const timer = setTimeout(() => setText(typed), TYPING_MS)
    return () => clearTimeout(timer)
  }, [typed])
  const wanted = text === '' ? { ...(method === undefined ? {} : { method }) } : { text }
  const { value, error, again } = useLoaded<{ items: readonly Summary[] }>(
    `traces?${new URLSearchParams({ limit: String(MOST + 1), ...wanted })}`,
  )
  const others = value?.items.filter(({ trace_id }) => trace_id !== trace)
  return (
    <dialog ref={dialog} class="choose-other" aria-labelledby="choose-title" onClose={close}>
      <h2 id="choose-title">Compare with</h2>
      <label class="inline grow row">
        Filter{' '}
        <input
          type="text"
          placeholder="id, agent, method or target"
          value={typed}
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
      </label>
      <div class="others">
        {value === undefined && error === undefined && <Loading what="the traces" />}
        {error !== undefined && <Failed error={error} retry={again} />}
        {others?.length === 0 && (
          <Empty title="No other trace">
            <p>None {text === '' ? 'has the same method' : 'fits'}: try another filter.</p>
          </Empty>
        )}
        <ul class="plain">
          {others?.map((row) => (
            // biome-ignore lint/a11y/useKeyWithClickEvents: a link in it is followed; then this is over
            <li key={row.trace_id} onClick={close}>
              <TraceRow
                row={row}
                href={`${hrefOf(pathOf('traces', trace))}?${new URLSearchParams({ with: row.trace_id })}`}
              />
            </li>
          ))}
        </ul>
      </div>
      <form method="dialog" class="row end">
        <button type="submit">Cancel</button>
      </form>
    </dialog>
  )
}
