/** The control of one value: what is typed or chosen is what is entered, nothing is converted in silence. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { isRawNumber, numberOf } from '../exact.ts'
import { formatOf } from '../schema/formats.ts'
import { canonical, Unread } from '../schema/value.ts'
import { brief } from '../text.ts'
import { JsonInput } from './form-json.tsx'
import type { FieldProps } from './form-state.ts'
import { pretty } from './pretty.ts'

const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?$/

interface InputProps extends FieldProps {
  readonly id: string
}

export function Input({ field, context, id }: InputProps) {
  const { set, problems } = context
  const attributes = {
    id,
    'aria-invalid': problems.has(field.pointer),
    'aria-required': field.isRequired,
    'aria-describedby': `${id}-problem ${id}-title ${id}-told`,
  }
  const { kind, value, path } = field
  if (kind === 'values') return <Values field={field} context={context} attributes={attributes} />
  if (kind === 'boolean')
    return <Checkbox value={value} change={(checked) => set(path, checked)} attributes={attributes} />
  if (kind === 'null') return <Nothing field={field} context={context} attributes={attributes} />
  if (kind === 'json') return <JsonInput value={value} change={(read) => set(path, read)} attributes={attributes} />
  return <Text field={field} context={context} attributes={attributes} />
}

export interface Attributes {
  readonly id: string
  readonly 'aria-invalid': boolean
  readonly 'aria-required': boolean
  readonly 'aria-describedby': string
}

interface PartProps extends FieldProps {
  readonly attributes: Attributes
}

function Text({ field, context, attributes }: PartProps) {
  const { path, kind, schema, value } = field
  const [typed, setTyped] = useState('')
  // 1.0 is on its way to 1.05: what says the same stays as it was typed.
  const isAsTyped = kind === 'number' && typed !== '' && canonical(readNumber(typed)) === canonical(value)
  const text = isAsTyped ? typed : textOf(value)
  const enter = ({ currentTarget }: { readonly currentTarget: { readonly value: string } }): void => {
    const entered = currentTarget.value
    setTyped(entered)
    const isLeftOut = entered === '' && typeof path.at(-1) !== 'number'
    context.set(path, isLeftOut ? undefined : kind === 'number' ? readNumber(entered) : entered)
  }
  const format = formatOf(schema['format'])
  if (kind === 'text' && format === undefined)
    return <textarea {...attributes} rows={1} value={text} onInput={enter} spellcheck={false} />
  const type = schema['format'] === 'date' && (text === '' || format!.fits(text)) ? 'date' : 'text'
  const inputMode = kind === 'number' ? (schema['type'] === 'integer' ? 'numeric' : 'decimal') : undefined
  return (
    <input
      {...attributes}
      type={type as 'text'}
      inputMode={inputMode}
      placeholder={format?.example}
      value={text}
      onInput={enter}
      spellcheck={false}
      autocomplete="off"
    />
  )
}

/** Text that is no number stays what it is, and is said to be none. */
function readNumber(text: string): unknown {
  return NUMBER.test(text.trim()) ? numberOf(text.trim()) : text
}

function textOf(value: unknown): string {
  if (value === undefined) return ''
  if (typeof value === 'string') return value
  return isRawNumber(value) ? value.rawJSON : value instanceof Unread ? value.text : pretty(value)
}

interface CheckboxProps {
  readonly value: unknown
  readonly change: (checked: boolean) => void
  readonly attributes: Attributes
}

/** Neither checked nor unchecked is left out. */
function Checkbox({ value, change, attributes }: CheckboxProps) {
  const box = useRef<HTMLInputElement>(null)
  useEffect(() => {
    box.current!.indeterminate = typeof value !== 'boolean'
  }, [value])
  const { 'aria-required': _needed, ...rest } = attributes
  return (
    <input
      {...rest}
      ref={box}
      type="checkbox"
      checked={value === true}
      onChange={({ currentTarget }) => change(currentTarget.checked)}
    />
  )
}

function Nothing({ field, context, attributes }: PartProps) {
  return (
    <select
      {...attributes}
      value={field.value === null ? 'null' : ''}
      onChange={({ currentTarget }) => context.set(field.path, currentTarget.value === '' ? undefined : null)}
    >
      <option value="">left out</option>
      <option value="null">null</option>
    </select>
  )
}

function Values({ field: { options, chosen, path, value, isRequired }, context, attributes }: PartProps) {
  const unknown = chosen < 0 && value !== undefined
  return (
    <select
      {...attributes}
      value={unknown ? 'unknown' : chosen < 0 ? '' : String(chosen)}
      onChange={({ currentTarget }) => {
        const option = currentTarget.value === '' ? undefined : options[Number(currentTarget.value)]
        context.set(path, option?.value)
      }}
    >
      {(!isRequired || chosen < 0) && <option value="">{isRequired ? 'choose …' : 'left out'}</option>}
      {unknown && <option value="unknown">{brief(pretty(value))}</option>}
      {options.map(({ label }, index) => (
        <option key={index} value={String(index)}>
          {brief(label, 200)}
        </option>
      ))}
    </select>
  )
}
