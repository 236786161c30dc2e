/**
 * A stateless member wants to know more before it answers a client that knows no such results (contract 13.12).
 *
 * What it wants becomes questions to the client; the call is repeated with the answers, so often and no more. The bus must
 * understand these results, so they are parsed; the call itself is spliced.
 */
import { Envelope } from '../wire/envelope.ts'
import { FIELD } from '../wire/fields.ts'
import { cutMembers } from '../wire/member-edit.ts'
import { isNestedTooDeep } from '../wire/nesting.ts'
import { editBytes, insertMember, replace } from '../wire/splice.ts'
import type { MemberLink } from './member-link.ts'
import type { Pending } from './pending.ts'
import type { Questions } from './questions.ts'
import { BOUNDS } from './spec.ts'

interface Wanted {
  readonly inputRequests: Readonly<Record<string, { readonly method: string; readonly params?: unknown }>>
  readonly requestState: unknown
}

/** What the rounds ask of the client they are for. */
export interface RoundsHost {
  readonly questions: Questions
  /** The answer to the repeated call. */
  answered(pending: Pending, link: MemberLink, line: Envelope): void
  /** It cannot be answered. */
  failed(pending: Pending, why: string): void
}

const MAX_INPUTS = 64
const REPEATED = ['inputResponses', 'requestState']

/** The result says that more is wanted. */
export function requiresInput(line: Envelope): boolean {
  const { bytes } = line
  const start = line.startOf(FIELD.result)
  if (bytes.subarray(start, line.endOf(FIELD.result)).indexOf('input_required') === -1) return false
  return JSON.parse(line.spelling(FIELD.result))?.resultType === 'input_required'
}

export function askForInput(host: RoundsHost, pending: Pending, link: MemberLink, line: Envelope): void {
  const wanted = JSON.parse(line.spelling(FIELD.result)) as Wanted
  const requests = Object.entries(wanted.inputRequests ?? {})
  if (++pending.rounds > BOUNDS.inputRounds)
    return host.failed(pending, `it asked more than ${BOUNDS.inputRounds} times`)
  if (requests.length > MAX_INPUTS || isNestedTooDeep(line.bytes))
    return host.failed(pending, 'it asked for too much at once')
  const beyond = requests.find(([, request]) => !host.questions.canAsk(request?.method))
  if (beyond !== undefined) return host.failed(pending, `the client did not offer ${String(beyond[1]?.method)}`)
  const answers = new Map<string, string>()
  const open = new Set<string>()
  const goOn = (): void => {
    if (open.size > 0 || answers.size < requests.length || pending.isOver) return
    const text = requests.map(([key]) => `${JSON.stringify(key)}:${answers.get(key)}`).join(',')
    repeat(host, pending, link, { responses: `{${text}}`, state: wanted.requestState })
  }
  pending.onCancel = () => {
    for (const id of open) host.questions.withdraw(id)
  }
  for (const [key, { method, params }] of requests) {
    const id = host.questions.ask(method, JSON.stringify(params ?? {}), (answer) => {
      open.delete(id)
      if (pending.isOver || pending.isWaived) return
      if (!answer.has(FIELD.result)) {
        pending.onCancel?.()
        return host.failed(pending, 'the client refused a question')
      }
      answers.set(key, answer.spelling(FIELD.result))
      goOn()
    })
    open.add(id)
  }
  goOn()
}

interface Input {
  /** As JSON. */
  readonly responses: string
  readonly state: unknown
}

function repeat(host: RoundsHost, pending: Pending, link: MemberLink, { responses, state }: Input): void {
  pending.onCancel = undefined
  const line = new Envelope()
  const sent = withoutInput(pending.sent!)
  line.read(sent, 0, sent.length - 1)
  const id = link.lendId((answer) => host.answered(pending, link, answer))
  const told = state === undefined ? '' : `,"requestState":${JSON.stringify(state)}`
  const edits = [
    replace(line, FIELD.id, JSON.stringify(id)),
    insertMember(line, FIELD.params, `"inputResponses":${responses}${told}`),
  ]
  pending.onCancel = () => link.cancel(id)
  link.send(editBytes(sent, edits))
}

/** A call is repeated as it was first sent. */
function withoutInput(sent: Buffer): Buffer {
  const line = new Envelope()
  line.read(sent, 0, sent.length - 1)
  const params = { start: line.startOf(FIELD.params), end: line.endOf(FIELD.params) }
  return editBytes(sent, cutMembers(sent, params, REPEATED))
}
