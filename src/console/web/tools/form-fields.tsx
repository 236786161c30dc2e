/** Fields with their labels, what is told of them and what is wrong; groups of them where a value is made of others. */
import { useId, useState } from 'preact/hooks'
import { initialItem, initialOf } from '../schema/initial.ts'
import { type Field, itemSchema, type Option, valuesOf } from '../schema/plan.ts'
import { flatten } from '../schema/schema.ts'
import { canonical, isObject, own } from '../schema/value.ts'
import { brief, shown } from '../text.ts'
import { Input } from './form-inputs.tsx'
import type { FieldProps } from './form-state.ts'

const MAX_DESCRIPTION_CHARS = 2_000
const MAX_TICKS = 24

export function Fields({ field, context }: FieldProps) {
  return (
    <>
      {field.fields.map((each) => (
        <FieldView key={each.pointer} field={each} context={context} />
      ))}
      {field.leftOff > 0 && <p class="quiet">{field.leftOff} more are not drawn: they can be entered as JSON.</p>}
      {isObject(field.schema['additionalProperties']) && field.kind === 'object' && (
        <NewProperty field={field} context={context} />
      )}
    </>
  )
}

export function FieldView({ field, context }: FieldProps) {
  if (field.kind === 'object' || field.kind === 'list') return <Group field={field} context={context} />
  if (field.kind === 'choice') return <ChoiceGroup field={field} context={context} />
  return <Single field={field} context={context} />
}

// ---- one value ----

function Single({ field, context }: FieldProps) {
  const { set, problems } = context
  const id = useId()
  const problem = problems.get(field.pointer)
  const isClearable = !field.isRequired && field.value !== undefined && field.kind !== 'text' && field.kind !== 'number'
  return (
    <div class={`field ${field.kind} ${problem === undefined ? '' : 'wrong'}`}>
      <div class="field-head">
        <label for={id}>{brief(field.name, 200)}</label>
        {!isToldTwice(field) && (
          <span class="field-title" id={`${id}-title`}>
            {brief(field.title)}
          </span>
        )}
        <Need field={field} />
        {isClearable && (
          <button type="button" class="small link" aria-describedby={id} onClick={() => set(field.path, undefined)}>
            Leave out
          </button>
        )}
      </div>
      <Input field={field} context={context} id={id} />
      <Told field={field} id={id} problem={problem} />
    </div>
  )
}

function isToldTwice({ name, title }: Field): boolean {
  return title === undefined || title.toLowerCase().replace(/[\s_-]/g, '') === name.toLowerCase().replace(/[\s_-]/g, '')
}

function Need({ field: { isRequired, kind, value, path } }: { readonly field: Field }) {
  if (typeof path.at(-1) === 'number') return null
  if (isRequired) return <span class="need">required</span>
  if (value === '' && kind === 'text') return <span class="need quiet">sent as empty text</span>
  return value === undefined && kind === 'boolean' ? <span class="need quiet">left out</span> : null
}

interface ToldProps {
  readonly field: Field
  readonly id: string
  readonly problem: string | undefined
}

function Told({ field: { description, note, schema, kind }, id, problem }: ToldProps) {
  const pattern = kind === 'text' && typeof schema['pattern'] === 'string' ? schema['pattern'] : undefined
  return (
    <>
      {problem !== undefined && (
        <p class="problem" id={`${id}-problem`}>
          ✗ {shown(problem).slice(0, 500)}
        </p>
      )}
      <p class="field-told quiet" id={`${id}-told`}>
        {shown(description ?? '').slice(0, MAX_DESCRIPTION_CHARS)}
        {pattern !== undefined && (
          <>
            {' '}
            Fits <code>{brief(pattern)}</code>.
          </>
        )}
        {note !== undefined && ` Entered as JSON, because ${note}.`}
      </p>
    </>
  )
}

// ---- values made of others ----

function Group({ field, context }: FieldProps) {
  return (
    <fieldset class={context.problems.has(field.pointer) ? 'group wrong' : 'group'}>
      <Legend field={field} />
      <GroupBody field={field} context={context} />
    </fieldset>
  )
}

function Legend({ field }: { readonly field: Field }) {
  return (
    <>
      <legend>
        {brief(field.name, 200)}
        {isToldTwice(field) ? '' : <span class="field-title"> {brief(field.title)}</span>} <Need field={field} />
      </legend>
      {field.description !== undefined && (
        <p class="field-told quiet">{shown(field.description).slice(0, MAX_DESCRIPTION_CHARS)}</p>
      )}
    </>
  )
}

function GroupBody({ field, context }: FieldProps) {
  const { kind, path, isRequired, value, schema } = field
  const problem = context.problems.get(field.pointer)
  // A list that is left out looks like one without items, and takes one.
  const isThere = value !== undefined || isRequired || kind === 'list'
  const add = (): void => context.set(path, initialOf(schema, context.document, true) ?? {})
  return (
    <>
      {problem !== undefined && <p class="problem">✗ {shown(problem).slice(0, 500)}</p>}
      {isThere && kind === 'object' && <Fields field={field} context={context} />}
      {isThere && kind === 'list' && <ListBody field={field} context={context} />}
      {!isThere && (
        <button type="button" class="small" onClick={add}>
          Add
        </button>
      )}
      {value !== undefined && !isRequired && (
        <button type="button" class="small link" onClick={() => context.set(path, undefined)}>
          Leave out
        </button>
      )}
    </>
  )
}

/** Some of a few values are ticked; anything else is entered one by one. */
function ListBody({ field, context }: FieldProps) {
  const options = ticksOf(field, context.document)
  if (options === undefined) return <Items field={field} context={context} />
  const items = Array.isArray(field.value) ? field.value : []
  const isTicked = (option: Option): boolean => items.some((item) => canonical(item) === canonical(option.value))
  const tick = (option: Option): void => {
    const ticked = options.filter((each) => (each === option) !== isTicked(each)).map(({ value }) => value)
    context.set(field.path, ticked)
  }
  return (
    <div class="ticks">
      {options.map((option, index) => (
        <label key={index} class="inline">
          <input type="checkbox" checked={isTicked(option)} onChange={() => tick(option)} />
          {brief(option.label)}
        </label>
      ))}
    </div>
  )
}

/** undefined: its items are not of a few values, or one of them is none or there twice. */
function ticksOf({ schema, value }: Field, document: unknown): readonly Option[] | undefined {
  const { schema: items } = flatten(itemSchema(schema, 0), document)
  const options = Array.isArray(schema['prefixItems']) ? undefined : valuesOf(items)
  if (options === undefined || options.length > MAX_TICKS) return undefined
  const known = new Set(options.map((option) => canonical(option.value)))
  const entered = (Array.isArray(value) ? value : []).map(canonical)
  return entered.every((each) => known.delete(each)) ? options : undefined
}

function Items({ field, context }: FieldProps) {
  const { path, fields, leftOff, schema, value } = field
  const items = Array.isArray(value) ? value : []
  const most = schema['maxItems']
  const add = (): void =>
    context.set([...path, items.length], initialItem(itemSchema(schema, items.length), context.document))
  return (
    <>
      {fields.length === 0 && <p class="quiet">{value === undefined ? 'Left out.' : 'An empty list is sent.'}</p>}
      <ol class="items">
        {fields.map((each, index) => (
          <li key={each.pointer}>
            <FieldView field={each} context={context} />
            <button type="button" class="small link" onClick={() => context.set([...path, index], undefined)}>
              Remove item {index + 1}
            </button>
          </li>
        ))}
      </ol>
      {leftOff > 0 && <p class="quiet">{leftOff} more items: they can be seen as JSON.</p>}
      {!(typeof most === 'number' && items.length >= most) && (
        <button type="button" class="small" onClick={add}>
          Add item
        </button>
      )}
    </>
  )
}

function NewProperty({ field, context }: FieldProps) {
  const [name, setName] = useState('')
  const isTaken = name === '' || own(field.value, name) !== undefined
  const add = (): void => {
    context.set([...field.path, name], initialItem(field.schema['additionalProperties'], context.document))
    setName('')
  }
  return (
    <div class="row new-property">
      <label class="inline">
        New property <input type="text" value={name} onInput={({ currentTarget }) => setName(currentTarget.value)} />
      </label>
      <button type="button" class="small" disabled={isTaken} onClick={add}>
        Add property
      </button>
    </div>
  )
}

/** Which of several shapes a value has. */
export function Choice({ field, context }: FieldProps) {
  const id = useId()
  return (
    <div class="field choice">
      <label for={id}>Choice</label>
      <select
        id={id}
        value={String(field.chosen)}
        onChange={({ currentTarget }) => context.choose(field, Number(currentTarget.value))}
      >
        {field.options.map(({ label }, index) => (
          <option key={index} value={String(index)}>
            {brief(label, 200)}
          </option>
        ))}
      </select>
    </div>
  )
}

/** What was chosen stands below; null needs nothing entered. */
function ChoiceGroup({ field, context }: FieldProps) {
  const [inner] = field.fields
  return (
    <fieldset class="group choice-group">
      <Legend field={field} />
      <Choice field={field} context={context} />
      {inner !== undefined && <Chosen key={field.chosen} field={inner} context={context} />}
    </fieldset>
  )
}

function Chosen({ field, context }: FieldProps) {
  const problem = context.problems.get(field.pointer)
  if (field.kind === 'null' && field.value === null) return null
  if (field.kind === 'object' || field.kind === 'list') return <GroupBody field={field} context={context} />
  if (field.kind !== 'choice') return <Single field={field} context={context} />
  return (
    <>
      {problem !== undefined && <p class="problem">✗ {shown(problem)}</p>}
      <ChoiceGroup field={field} context={context} />
    </>
  )
}
