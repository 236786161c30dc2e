/** What was chosen: what is said of it, its form, and what came of calling it. */
import { useRef, useState } from 'preact/hooks'
import { isObject, type Properties } from '../schema/value.ts'
import { brief, shown } from '../text.ts'
import { useCall } from './call.ts'
import type { Connection } from './connection.ts'
import { Form } from './form.tsx'
import { emptyForm, problemsOf } from './form-state.ts'
import { ITEM_KINDS, type Item } from './items.ts'
import { Folded, Json, Result } from './result.tsx'
import { ServerQuestion } from './server-question.tsx'

const MAX_DESCRIPTION_CHARS = 8_000

/** What a tool says of itself; nobody vouches for it. */
const HINTS: readonly (readonly [key: string, value: boolean, words: string])[] = [
  ['readOnlyHint', true, 'only reads'],
  ['destructiveHint', true, 'may destroy'],
  ['idempotentHint', true, 'again changes nothing'],
  ['openWorldHint', true, 'reaches outside'],
]

export interface ItemViewProps {
  readonly item: Item
  readonly pool: string
  readonly connection: Connection
}

export function ItemView({ item, pool, connection }: ItemViewProps) {
  const { method, schemaOf, paramsOf } = ITEM_KINDS[item.kind]
  const [form, setForm] = useState(() => emptyForm(schemaOf(item)))
  const [isJsonShown, setJsonShown] = useState(false)
  const [loggedBefore, setLoggedBefore] = useState<readonly Properties[]>([])
  const box = useRef<HTMLFormElement>(null)
  const { state, start, cancel } = useCall()
  const { client, questions } = connection
  const isRunning = state.phase === 'running'
  const problemCount = form.isTried ? problemsOf(form).length : 0
  const send = (): void => {
    if (client === undefined || isRunning) return
    if (problemsOf(form).length === 0) {
      setLoggedBefore(connection.logs)
      start(client, method, paramsOf(item, form.value as Properties))
      return
    }
    setForm({ ...form, isTried: true })
    // Once it is drawn what is wrong.
    requestAnimationFrame(() => box.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus())
  }
  return (
    <>
      <Head item={item} />
      <form
        ref={box}
        class="card"
        noValidate
        onSubmit={(event) => {
          event.preventDefault()
          send()
        }}
        onKeyDown={(event) => {
          if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
            event.preventDefault()
            send()
          }
        }}
      >
        <Form state={form} change={setForm} isJsonShown={isJsonShown} />
        <div class="row acts">
          <button type="submit" class="primary" disabled={isRunning || client === undefined}>
            Call
          </button>
          {isRunning && (
            <button type="button" onClick={cancel}>
              Cancel
            </button>
          )}
          <button type="button" aria-pressed={isJsonShown} onClick={() => setJsonShown(!isJsonShown)}>
            As JSON
          </button>
          <button type="button" onClick={() => setForm(emptyForm(schemaOf(item)))}>
            Reset
          </button>
          <span class="quiet keys-hint">
            <code>{method}</code> · <kbd>Ctrl</kbd> <kbd>Enter</kbd>
          </span>
        </div>
        <p role="alert" class="problem">
          {problemCount > 0 &&
            `Not sent: ${problemCount === 1 ? 'one thing is' : `${problemCount} things are`} wrong above.`}
        </p>
      </form>
      {questions.map((question) => (
        <ServerQuestion key={question.key} question={question} />
      ))}
      <Result
        call={state}
        item={item}
        pool={pool}
        logs={connection.logs.filter((line) => !loggedBefore.includes(line))}
      />
      <Folded title="As the server tells it">{() => <Json value={item.told} />}</Folded>
    </>
  )
}

function Head({ item }: { readonly item: Item }) {
  const annotations = isObject(item.told['annotations']) ? item.told['annotations'] : {}
  const hints = HINTS.filter(([key, value]) => annotations[key] === value)
  const { mimeType, size } = item.told
  return (
    <header class="item-head">
      <h2>
        <code>{brief(item.name, 300)}</code>
      </h2>
      {item.title !== undefined && <p class="item-title">{brief(item.title, 300)}</p>}
      {item.description !== '' && (
        <p class="prewrapped item-description">{shown(item.description.slice(0, MAX_DESCRIPTION_CHARS))}</p>
      )}
      {(hints.length > 0 || typeof mimeType === 'string') && (
        <p class="hints">
          {hints.map(([key, , words]) => (
            <span key={key} class="hint">
              {words}
            </span>
          ))}
          {typeof mimeType === 'string' && <span class="hint">{brief(mimeType)}</span>}
          {typeof size === 'number' && <span class="hint">{size} B</span>}
        </p>
      )}
    </header>
  )
}
