/**
 * The one question every reader of peers' JSON asks first: is this an object?
 */
export type JsonObject = Readonly<Record<string, unknown>>

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The value as an object, or an empty one. */
export function objectOr(value: unknown): JsonObject {
  return isObject(value) ? value : {}
}
