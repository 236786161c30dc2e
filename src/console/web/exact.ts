/** Numbers as they were written: one that the browser would change is carried as its text, where the browser can do that. */
const { rawJSON, isRawJSON } = JSON as {
  rawJSON?: (text: string) => { readonly rawJSON: string }
  isRawJSON?: (value: unknown) => boolean
}

/** A number of so many digits comes back from the browser as it went in. */
const SURE_DIGITS = 15

/** A number, or what `JSON.stringify` writes as exactly this text. */
export function numberOf(text: string): unknown {
  const value = Number(text)
  return rawJSON === undefined || isKept(text, value) ? value : rawJSON(text)
}

/** Whether this stands for a number that is no `number`. */
export function isRawNumber(value: unknown): value is { readonly rawJSON: string } {
  return isRawJSON?.(value) === true
}

/** For `JSON.parse`. */
export function exactly(_key: string, value: unknown, context?: { readonly source?: string }): unknown {
  return typeof value === 'number' && context?.source !== undefined ? numberOf(context.source) : value
}

function isKept(text: string, value: number): boolean {
  if (String(value) === text) return true
  const digits = text.replace(/[eE].*$/, '').replace(/^[-+0.]+|\./g, '')
  return Number.isFinite(value) && (value !== 0 || digits === '') && digits.length <= SURE_DIGITS
}
