/**
 * A form drawn from its plan: a labelled field for each property, and the same as JSON, each in step with the other (contract 15.10).
 *
 * What is entered is what is sent. Words of the schema are text (15.17).
 */
import { rechosen } from '../schema/initial.ts'
import { choicesOf, planForm } from '../schema/plan.ts'
import { withValue } from '../schema/value.ts'
import { shown } from '../text.ts'
import { Choice, Fields, FieldView } from './form-fields.tsx'
import { JsonEditor } from './form-json.tsx'
import { type Context, type FieldProps, type FormState, placed, problemsOf } from './form-state.ts'

export interface FormProps {
  readonly state: FormState
  readonly change: (state: FormState) => void
  readonly isJsonShown: boolean
}

export function Form({ state, change, isJsonShown }: FormProps) {
  const root = planForm(state.schema, state)
  const problems = state.isTried ? placed(problemsOf(state), root) : new Map<string, string>()
  const context: Context = {
    problems,
    document: state.schema,
    set: (path, value) => change({ ...state, draft: undefined, value: withValue(state.value, path, value) }),
    choose: (field, chosen) => {
      const choice = choicesOf(field.schema)?.[chosen]
      const value = withValue(state.value, field.path, rechosen(field.value, choice, state.schema))
      change({ ...state, draft: undefined, value, chosen: new Map(state.chosen).set(field.pointer, chosen) })
    },
  }
  const isBare = root.kind === 'object' && root.fields.length === 0 && root.leftOff === 0
  return (
    <div class={isJsonShown ? 'form-sides with-json' : 'form-sides'}>
      <div class="form-fields">
        {isBare && <p class="quiet">Nothing has to be entered.</p>}
        {problems.get('') !== undefined && root.kind !== 'json' && <p class="problem">✗ {shown(problems.get(''))}</p>}
        <Root field={root} context={context} />
      </div>
      {isJsonShown && <JsonEditor state={state} change={change} />}
    </div>
  )
}

function Root({ field, context }: FieldProps) {
  if (field.kind === 'json') return <FieldView field={{ ...field, name: 'Arguments' }} context={context} />
  if (field.kind !== 'choice') return <Fields field={field} context={context} />
  return (
    <>
      <Choice field={{ ...field, name: 'Choice' }} context={context} />
      {field.fields.map((each) => (
        <Root key={field.chosen} field={each} context={context} />
      ))}
    </>
  )
}
