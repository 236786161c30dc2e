/**
 * Makes text of the endpoint fit to be shown: secrets cut out, control characters escaped, length bounded.
 *
 * Invariant: nothing that came from outside reaches a message or a log without passing here.
 */
import { printable } from '../../wire/printable.ts'
import { type Redact, redactor as redactorOf, secretsOfHeaders } from '../../wire/secrets.ts'
import type { Config } from './config.ts'

export type { Redact }

/** A function that cuts the configured secrets out of any text. */
export function redactor(config: Pick<Config, 'apiKey' | 'headers'>): Redact {
  return redactorOf([config.apiKey, ...secretsOfHeaders(config.headers)], '[secret]')
}

/** One line, without control characters, of at most `maxChars`. */
export function toLine(text: string, maxChars = 500): string {
  const flat = printable(text.replace(/\s+/g, ' ').trim())
  return flat.length > maxChars ? `${flat.slice(0, maxChars)}…` : flat
}
