/** What a form holds, and what is wrong with it: pure. */
import { check, type Problem } from '../schema/check.ts'
import { initialValue } from '../schema/initial.ts'
import type { Entered, Field } from '../schema/plan.ts'
import { isObject, type Path, pointerOf } from '../schema/value.ts'

const MAX_SCHEMA_CHARS = 512 * 1024

/** What a form holds. */
export interface FormState extends Entered {
  readonly schema: unknown
  /** The text of the editor while it is not JSON. */
  readonly draft: string | undefined
  /** Somebody has tried to send it: from now on it is said what is wrong. */
  readonly isTried: boolean
}

export function emptyForm(told: unknown): FormState {
  const schema = isDrawable(told) ? told : { title: 'Arguments', description: 'Its schema is too large to be drawn.' }
  return { schema, value: initialValue(schema), chosen: new Map(), draft: undefined, isTried: false }
}

/** Small enough to be looked at whenever something is entered. */
export function isDrawable(schema: unknown): boolean {
  try {
    return JSON.stringify(schema).length <= MAX_SCHEMA_CHARS
  } catch {
    return false
  }
}

export function problemsOf({ schema, value, chosen, draft }: FormState): Problem[] {
  if (draft !== undefined) return [{ path: [], message: 'is not JSON' }]
  if (!isObject(value)) return [{ path: [], message: 'must be an object' }]
  return check(value, schema, schema, chosen)
}

/** What is wrong is said at the nearest field that is drawn. */
export function placed(problems: readonly Problem[], root: Field): Map<string, string> {
  const drawn = new Set<string>()
  const visit = ({ pointer, fields }: Field): void => {
    drawn.add(pointer)
    for (const field of fields) visit(field)
  }
  visit(root)
  const found = new Map<string, string>()
  for (const { path, message } of problems) {
    let length = path.length
    while (length > 0 && !drawn.has(pointerOf(path.slice(0, length)))) length--
    const inside = path.slice(length).join('.')
    const pointer = pointerOf(path.slice(0, length))
    if (!found.has(pointer)) found.set(pointer, inside === '' ? message : `${inside} ${message}`)
  }
  return found
}

/** What the fields of a form share. */
export interface Context {
  readonly problems: ReadonlyMap<string, string>
  readonly document: unknown
  readonly set: (path: Path, value: unknown) => void
  readonly choose: (field: Field, chosen: number) => void
}

export interface FieldProps {
  readonly field: Field
  readonly context: Context
}
