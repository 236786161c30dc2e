/**
 * One connection, from its first byte to its end: writes what the plan says and judges what comes back.
 *
 * Every request is answered exactly once; a connection that must be closed is told why, and no other is.
 */
import { eventually } from '../../chaos/stage/waiting.mjs'
import { isId } from '../reference.mjs'
import { piecesOf } from './plan.mjs'

const CODES = { not_json: -32700, bad_envelope: -32600, message_too_large: -32600 }
const TIMEOUT_MS = 30_000

class Listening {
  lines = []
  answers = 0
  isClosed = false
  garbage
  #held = ''

  constructor(stream) {
    stream.setEncoding('latin1')
    stream.on('data', (text) => this.#take(text))
    stream.once('close', () => (this.isClosed = true))
    stream.once('end', () => (this.isClosed = true))
    stream.on('error', (error) => (this.error = error))
  }

  #take(text) {
    const lines = (this.#held + text).split('\n')
    this.#held = lines.pop()
    for (const line of lines) this.#read(Buffer.from(line, 'latin1').toString())
  }

  #read(line) {
    try {
      const message = JSON.parse(line)
      this.lines.push(message)
      if (message.method === undefined) this.answers++
    } catch {
      this.garbage = line
    }
  }
}

const reasonOf = (message) => message?.error?.data?.reason
const isClosing = (message) => Object.hasOwn(CODES, reasonOf(message) ?? '')

/** Takes away what was asked and gives what was answered without being asked. */
function unasked(answers, requests) {
  const open = new Map()
  for (const id of requests) open.set(id, (open.get(id) ?? 0) + 1)
  return answers.filter(({ id }) => {
    const key = JSON.stringify(id)
    const left = open.get(key) ?? 0
    open.set(key, left - 1)
    return left <= 0
  })
}

/** Why the client was closed must be said once; what it was owed may come before and after that (contract 4.3). */
function judgeFault({ ids, reason }, closing, heard) {
  if (!heard.isClosed) return `open: the connection is not closed for ${reason}`
  if (closing.length !== 1 || reasonOf(closing[0]) !== reason)
    return `reason: closed with ${closing.map(reasonOf).join() || 'none'} (${heard.error?.code}) where ${reason} is meant`
  const { id, error } = closing[0]
  if (error.code !== CODES[reason]) return `code: ${error.code} for ${reason}`
  // Of a line without an end only its beginning is known: any id that can be one is right.
  const isMeant = ids === undefined ? id === null || isId(JSON.stringify(id)) : ids.includes(JSON.stringify(id))
  return isMeant ? undefined : `id: ${JSON.stringify(id)} where ${ids ?? 'one of at most 1 KiB'} is meant`
}

function judgeAnswers(answers, requests) {
  const extra = unasked(answers, requests)
  if (extra.length > 0) return `doubled: ${JSON.stringify(extra[0]).slice(0, 300)} answers nothing`
  return answers.length < requests.length ? `unanswered: ${requests.length - answers.length} requests` : undefined
}

function judge({ fault, requests }, heard) {
  if (heard.garbage !== undefined) return `garbage: ${heard.garbage.slice(0, 200)}`
  const all = heard.lines.filter(({ method }) => method === undefined)
  const closing = all.filter(isClosing)
  if (fault === undefined && closing.length > 0) return `closing: ${reasonOf(closing[0])} for nothing`
  const wrong = fault === undefined ? undefined : judgeFault(fault, closing, heard)
  if (wrong !== undefined) return wrong
  const answers = all.filter((message) => !isClosing(message))
  return (
    judgeAnswers(answers, requests) ?? (heard.isClosed ? undefined : 'kept: the connection stays open after its end')
  )
}

/** Gives a finding, or undefined. */
export async function visit(house, plan, timeoutMs = TIMEOUT_MS) {
  const { input, output, leave } = house.enter()
  const heard = new Listening(output)
  input.on('error', (error) => (heard.error = error))
  for (const piece of piecesOf(plan)) {
    if (!input.write(piece) || plan.sizes[0] < 100) await new Promise((resolve) => setImmediate(resolve))
  }
  if (plan.endsEarly) input.end()
  const isServed = () => heard.isClosed || (plan.fault === undefined && heard.answers >= plan.requests.length)
  await eventually(isServed, timeoutMs, 2)
  input.end()
  await eventually(() => heard.isClosed, timeoutMs, 2)
  leave()
  return judge(plan, heard)
}
