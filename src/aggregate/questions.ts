/**
 * What members ask a client of the aggregate, and its answers (contract 13.12).
 *
 * A question reaches the client only if it has said that it can be asked this, and only from a member that cannot mean
 * anybody else. Its id is one that nobody can guess, so that no answer reaches another member. Every question is answered
 * once: by its client, or with a refusal.
 */
import { faultLine } from '../kernel/faults.ts'
import type { Envelope } from '../wire/envelope.ts'
import { FIELD } from '../wire/fields.ts'
import { replace, splice } from '../wire/splice.ts'
import type { MemberLink } from './member-link.ts'
import type { AggregatePort } from './port.ts'

/** The capability that says that a client can be asked this. */
const NEEDS: ReadonlyMap<string, string> = new Map([
  ['sampling/createMessage', 'sampling'],
  ['elicitation/create', 'elicitation'],
  ['roots/list', 'roots'],
])

const MAX_QUESTIONS = 1_024

interface Question {
  readonly link: MemberLink | undefined
  /** The id as the member spelled it. */
  readonly spelling: string
  /** The token for its progress as the member spelled it; undefined: it wants to hear of none. */
  readonly token: string | undefined
  readonly onAnswer: ((line: Envelope) => void) | undefined
}

export class Questions {
  readonly #port: AggregatePort
  readonly #client: number
  readonly #open = new Map<string, Question>()
  #offers: Readonly<Record<string, unknown>> = {}
  #last = 0

  constructor(port: AggregatePort, client: number) {
    this.#port = port
    this.#client = client
  }

  /** What the client has said that it can be asked. */
  offer(capabilities: Readonly<Record<string, unknown>>): void {
    this.#offers = capabilities
  }

  canAsk(method: unknown): boolean {
    const needed = typeof method === 'string' ? NEEDS.get(method) : undefined
    return needed !== undefined && this.#offers[needed] !== undefined
  }

  /** A member asks: the client, if it may be meant and can answer; else it is refused at once. */
  fromMember(link: MemberLink, line: Envelope): void {
    const id = line.idSpelling()
    const isAddressed = this.#port.factsOf(link.pool)?.sharing !== 'shared'
    if (!isAddressed || !this.canAsk(line.text(FIELD.method)!)) return link.send(faultLine(id, 'not_offered'))
    if (this.#open.size >= MAX_QUESTIONS) return link.send(faultLine(id, 'overloaded'))
    const hasToken = line.key(FIELD.metaProgressToken) !== undefined
    const token = hasToken ? line.spelling(FIELD.metaProgressToken) : undefined
    const minted = JSON.stringify(this.#mint({ link, spelling: id, token, onAnswer: undefined }))
    // Two members may have chosen the same token.
    const edits = [
      replace(line, FIELD.id, minted),
      ...(hasToken ? [replace(line, FIELD.metaProgressToken, minted)] : []),
    ]
    this.#port.reply(this.#client, splice(line, edits), { via: link.delegate })
  }

  /** The bus asks in a member's place; `params` is JSON. */
  ask(method: string, params: string, onAnswer: (line: Envelope) => void): string {
    const id = this.#mint({ link: undefined, spelling: '', token: undefined, onAnswer })
    const line = `{"jsonrpc":"2.0","id":"${id}","method":${JSON.stringify(method)},"params":${params}}\n`
    this.#port.reply(this.#client, Buffer.from(line))
    return id
  }

  #mint(question: Question): string {
    const id = `q${++this.#last}-${this.#port.secret}`
    this.#open.set(id, question)
    return id
  }

  /** The client answers; false: nobody has asked it that. */
  takeAnswer(line: Envelope): boolean {
    const id = line.text(FIELD.id)
    const question = id === undefined ? undefined : this.#open.get(id)
    if (question === undefined) return false
    this.#open.delete(id!)
    if (question.onAnswer !== undefined) question.onAnswer(line)
    else question.link!.send(splice(line, [replace(line, FIELD.id, question.spelling)]))
    return true
  }

  /** The member does not want to know any more. */
  withdrawn(link: MemberLink, line: Envelope): void {
    const spelling = line.has(FIELD.requestId) ? line.spelling(FIELD.requestId) : undefined
    for (const [id, question] of this.#open) {
      if (question.link !== link || question.spelling !== spelling) continue
      this.#open.delete(id)
      const told = splice(line, [replace(line, FIELD.requestId, JSON.stringify(id))])
      return this.#port.reply(this.#client, told, { via: link.delegate })
    }
  }

  /** What the bus has asked is not wanted any more. */
  withdraw(id: string): void {
    if (!this.#open.delete(id)) return
    const params = `{"requestId":"${id}"}`
    const line = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":${params}}\n`
    this.#port.reply(this.#client, Buffer.from(line))
  }

  /** The client tells how far it is with what a member has asked. */
  progress(line: Envelope): void {
    const minted = line.text(FIELD.progressToken)
    const question = minted === undefined ? undefined : this.#open.get(minted)
    if (question?.token !== undefined)
      question.link!.send(splice(line, [replace(line, FIELD.progressToken, question.token)]))
  }
}
