/**
 * What a call was asked, in words: the text of a prompt or of inputs, from the beginning of what is kept of its input.
 *
 * What is kept may have been cut, so the text is looked for and not parsed as a whole. Nothing is made up: where there is no
 * text there is none.
 */

/** So much of an input is looked at. */
export const PROMPT_HEAD_CHARS = 2_048
const MAX_PROMPT_CHARS = 200

/** The first text of `prompt` (ACP), `inputs` or `input` (AIO) or `messages`; JSON inside a string is spelled with escapes. */
const LISTS = /"(?:prompt|inputs?|messages)"\s*:/
const TEXT = /"(?:text|value|content)"\s*:\s*"((?:[^"\\]|\\.)*)/
/** A payload above the limit is kept as its head, in a string. */
const CUT_HEAD = /^\{"truncated":true,"bytes":\d+,"head":"((?:[^"\\]|\\.)*)/

export function promptIn(input: string | null): string | undefined {
  if (input === null) return undefined
  const head = CUT_HEAD.exec(input)
  const payload = head === null ? input.slice(0, PROMPT_HEAD_CHARS) : unescapeJson(head[1]!)
  const list = LISTS.exec(payload)
  if (list === null) return undefined
  const behind = payload.slice(list.index + list[0].length)
  const plain = /^\s*"((?:[^"\\]|\\.)*)/.exec(behind)
  const text = unescapeJson((plain ?? TEXT.exec(behind))?.[1] ?? '')
  return text.trim() === '' ? undefined : shorten(text.trim())
}

function shorten(text: string): string {
  const line = text.replace(/\s+/g, ' ')
  return line.length > MAX_PROMPT_CHARS ? `${line.slice(0, MAX_PROMPT_CHARS).replace(/[\ud800-\udbff]$/, '')}…` : line
}

/** The inside of a JSON string, which may have been cut in an escape; what is none says nothing. */
function unescapeJson(text: string): string {
  const whole = /^(?:[^\\]|\\[^u]|\\u[0-9a-fA-F]{4})*/.exec(text)![0]
  try {
    return JSON.parse(`"${whole}"`) as string
  } catch {
    return ''
  }
}
