/** What an agent waits for: a button for each choice, or a form; one click answers, a second does nothing (contract 15.8). */
import { useRef, useState } from 'preact/hooks'
import { ApiFailure } from '../api.ts'
import { Preformatted } from '../parts/preformatted.tsx'
import { brief, shown } from '../text.ts'
import type { Question } from './entries.ts'
import { Diff } from './tool.tsx'
import { questionTitle } from './transcript.tsx'

export interface QuestionProps {
  readonly question: Question
  /** Rejects with why it could not be answered; undefined: who looks may not. */
  readonly answer: ((body: { option: string } | { result: object }) => Promise<unknown>) | undefined
  /** What an answer brings with it; left out: whoever gives it drives. */
  readonly hint?: string
}

interface Option {
  readonly optionId: string
  readonly name: string
  readonly kind?: string
}

const DRIVES = 'Answering makes this page the driver.'

export function QuestionView({ question, answer, hint = DRIVES }: QuestionProps) {
  const { method, params } = question
  const [told, setTold] = useState<string>()
  const isSent = useRef(false)
  const send = async (body: { option: string } | { result: object }): Promise<void> => {
    if (isSent.current) return
    isSent.current = true
    setTold('Answering …')
    await answer!(body).then(
      () => setTold('Answered.'),
      (error) => {
        isSent.current = error instanceof ApiFailure && error.reason === 'already_answered'
        setTold(error instanceof Error ? error.message : String(error))
      },
    )
  }
  const canAnswer = answer !== undefined
  return (
    <section class="question" aria-label="The agent asks">
      <p class="question-title">
        <span class="question-mark" aria-hidden="true">
          ?
        </span>{' '}
        <strong>The agent asks: {brief(questionTitle(method, params), 300)}</strong>
      </p>
      <Subject params={params} />
      {method === 'session/request_permission' && (
        <Choices options={optionsOf(params)} disabled={!canAnswer || told !== undefined} choose={send} />
      )}
      {method === 'elicitation/create' && canAnswer && <Form params={params} send={send} />}
      {told === undefined ? (
        <p class="quiet">{canAnswer ? hint : 'Your role may not answer.'}</p>
      ) : (
        <p role="status">{shown(told)}</p>
      )}
    </section>
  )
}

// biome-ignore lint/suspicious/noExplicitAny: of a peer
function Subject({ params }: { readonly params: any }) {
  const content: unknown[] = Array.isArray(params?.toolCall?.content) ? params.toolCall.content : []
  const input = params?.toolCall?.rawInput
  return (
    <>
      {content.map((each, index) => {
        const { type, path, oldText, newText } = (each ?? {}) as Record<string, unknown>
        return type === 'diff' ? <Diff key={index} path={path} before={oldText} after={newText} /> : null
      })}
      {input !== undefined && (
        <Preformatted kind="subject">
          {shown(typeof input === 'string' ? input : JSON.stringify(input, null, 2)).slice(0, 4_000)}
        </Preformatted>
      )}
    </>
  )
}

interface ChoicesProps {
  readonly options: readonly Option[]
  readonly disabled: boolean
  readonly choose: (body: { option: string }) => void
}

function Choices({ options, disabled, choose }: ChoicesProps) {
  return (
    <div class="row choices">
      {options.map(({ optionId, name, kind }) => (
        <button
          key={optionId}
          type="button"
          class={kind?.startsWith('allow') ? 'primary' : ''}
          disabled={disabled}
          onClick={() => choose({ option: optionId })}
        >
          {brief(name, 60)}
        </button>
      ))}
    </div>
  )
}

function optionsOf(params: { readonly options?: unknown }): Option[] {
  const options: unknown[] = Array.isArray(params?.options) ? params.options : []
  return options.flatMap((option) => {
    const { optionId, name, kind } = (option ?? {}) as Record<string, unknown>
    if (typeof optionId !== 'string') return []
    return [{ optionId, name: String(name ?? optionId), ...(typeof kind === 'string' ? { kind } : {}) }]
  })
}

interface Field {
  readonly name: string
  readonly title: string
  readonly type: string
  readonly choices: readonly string[] | undefined
  readonly isRequired: boolean
}

// biome-ignore lint/suspicious/noExplicitAny: of a peer
function fieldsOf(schema: any): Field[] {
  const properties = typeof schema?.properties === 'object' && schema.properties !== null ? schema.properties : {}
  const required: unknown[] = Array.isArray(schema?.required) ? schema.required : []
  return Object.entries(properties as Record<string, Record<string, unknown>>).map(([name, property]) => ({
    name,
    title: String(property?.['title'] ?? name),
    type: String(property?.['type'] ?? 'string'),
    choices: Array.isArray(property?.['enum']) ? property['enum'].map(String) : undefined,
    isRequired: required.includes(name),
  }))
}

// biome-ignore lint/suspicious/noExplicitAny: of a peer
function Form({ params, send }: { readonly params: any; readonly send: (body: { result: object }) => void }) {
  const fields = fieldsOf(params?.requestedSchema)
  const submit = (event: SubmitEvent): void => {
    event.preventDefault()
    const data = new FormData(event.currentTarget as HTMLFormElement)
    const content = Object.fromEntries(fields.flatMap((field) => entered(field, data.get(field.name))))
    send({ result: { action: 'accept', content } })
  }
  return (
    <form class="asked-form" onSubmit={submit}>
      {fields.map((field) => (
        <div key={field.name} class="asked-field">
          <label for={`asked-${field.name}`}>
            {brief(field.title)}
            {field.isRequired ? '' : ' (optional)'}
          </label>
          <Input field={field} />
        </div>
      ))}
      <div class="row choices">
        <button type="submit" class="primary">
          Accept
        </button>
        <button type="button" onClick={() => send({ result: { action: 'decline' } })}>
          Decline
        </button>
      </div>
    </form>
  )
}

function Input({ field: { name, type, choices, isRequired } }: { readonly field: Field }) {
  if (choices !== undefined)
    return (
      <select id={`asked-${name}`} name={name} required={isRequired}>
        {!isRequired && <option value="" />}
        {choices.map((choice) => (
          <option key={choice} value={choice}>
            {brief(choice)}
          </option>
        ))}
      </select>
    )
  if (type === 'boolean') return <input type="checkbox" id={`asked-${name}`} name={name} />
  if (type === 'number' || type === 'integer')
    return (
      <input
        type="number"
        step={type === 'number' ? 'any' : '1'}
        id={`asked-${name}`}
        name={name}
        required={isRequired}
      />
    )
  return <input type="text" id={`asked-${name}`} name={name} required={isRequired} />
}

/** Left empty is absent; numbers are numbers. */
function entered({ name, type }: Field, value: FormDataEntryValue | null): [string, unknown][] {
  if (type === 'boolean') return [[name, value === 'on']]
  if (typeof value !== 'string' || value === '') return []
  return [[name, type === 'number' || type === 'integer' ? Number(value) : value]]
}
