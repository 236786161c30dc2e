/** Values as JSON text, in step with what was entered elsewhere: text that says the same stays as it was typed. */
import { useId, useState } from 'preact/hooks'
import { exactly } from '../exact.ts'
import { canonical, Unread } from '../schema/value.ts'
import { shown } from '../text.ts'
import type { Attributes } from './form-inputs.tsx'
import type { FormState } from './form-state.ts'
import { pretty } from './pretty.ts'

interface JsonInputProps {
  readonly value: unknown
  readonly change: (value: unknown) => void
  readonly attributes: Attributes
}

export function JsonInput({ value, change, attributes }: JsonInputProps) {
  const [text, setText] = useState(() => textOfJson(value))
  // Changed elsewhere: what stands here is not what was entered any more.
  const current = value instanceof Unread ? value.text : isSame(text, value) ? text : textOfJson(value)
  return (
    <textarea
      {...attributes}
      class="code"
      rows={2}
      spellcheck={false}
      placeholder="JSON"
      value={current}
      onInput={({ currentTarget }) => {
        setText(currentTarget.value)
        change(
          currentTarget.value.trim() === ''
            ? undefined
            : (readJson(currentTarget.value) ?? new Unread(currentTarget.value)),
        )
      }}
    />
  )
}

interface JsonEditorProps {
  readonly state: FormState
  readonly change: (state: FormState) => void
}

export function JsonEditor({ state, change }: JsonEditorProps) {
  const id = useId()
  const [text, setText] = useState(() => pretty(state.value))
  const current = state.draft ?? (isSame(text, state.value) ? text : pretty(state.value))
  const enter = (typed: string): void => {
    setText(typed)
    const read = readJson(typed)
    if (read === undefined) change({ ...state, draft: typed })
    else change({ ...state, draft: undefined, value: read, chosen: new Map() })
  }
  return (
    <div class="form-json field">
      <label for={id}>JSON</label>
      <textarea
        id={id}
        class="code"
        rows={8}
        spellcheck={false}
        value={current}
        aria-invalid={state.draft !== undefined}
        aria-describedby={`${id}-problem`}
        onInput={({ currentTarget }) => enter(currentTarget.value)}
      />
      <p id={`${id}-problem`} class="problem" role="status">
        {state.draft !== undefined && `✗ ${whyNotJson(state.draft)}`}
      </p>
    </div>
  )
}

function textOfJson(value: unknown): string {
  return value === undefined ? '' : value instanceof Unread ? value.text : pretty(value)
}

function isSame(text: string, value: unknown): boolean {
  if (text.trim() === '') return value === undefined
  const read = readJson(text)
  return read !== undefined && canonical(read) === canonical(value)
}

/** undefined: it is none. */
function readJson(text: string): unknown {
  try {
    return JSON.parse(text, exactly as never)
  } catch {
    return undefined
  }
}

function whyNotJson(text: string): string {
  try {
    JSON.parse(text)
    return ''
  } catch (error) {
    return shown(error instanceof Error ? error.message : error)
  }
}
