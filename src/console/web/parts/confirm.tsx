/** Asks before something is done that cannot be undone; Esc and Cancel leave everything as it was. */
import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { shown } from '../text.ts'

export interface ConfirmProps {
  readonly title: string
  readonly children: ComponentChildren
  /** What is done, as a verb. */
  readonly verb: string
  /** Rejects with why it could not be done. */
  readonly act: () => Promise<unknown>
  readonly close: () => void
}

export function Confirm({ title, children, verb, act, close }: ConfirmProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  const titleId = useId()
  const [isBusy, setBusy] = useState(false)
  const [problem, setProblem] = useState<string>()
  useEffect(() => dialog.current?.showModal(), [])
  const go = async (): Promise<void> => {
    setBusy(true)
    try {
      await act()
      close()
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error))
      setBusy(false)
    }
  }
  return (
    <dialog ref={dialog} class="confirm" aria-labelledby={titleId} onClose={close}>
      <h2 id={titleId}>{title}</h2>
      {children}
      {problem !== undefined && (
        <p class="problem" role="alert">
          {shown(problem)}
        </p>
      )}
      <div class="row end">
        <button type="button" onClick={close}>
          Cancel
        </button>
        <button type="button" class="danger" disabled={isBusy} onClick={go}>
          {verb}
        </button>
      </div>
    </dialog>
  )
}
