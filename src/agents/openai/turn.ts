/**
 * One turn: the question goes to the endpoint, the answer to the client, tools run in between.
 *
 * It never throws for the endpoint's sake: what goes wrong out there is said to the user and the turn ends well.
 * Invariant: all updates are taken before the turn ends, and the history never holds a call without its result.
 */
import type { SessionUpdate, StopReason } from '@agentclientprotocol/sdk'
import type { Answer } from './answer.ts'
import type { Completions } from './completions.ts'
import type { Config } from './config.ts'
import type { UserContent } from './content.ts'
import { networkMessage, reasonOf } from './errors.ts'
import { EndpointLost } from './event-stream.ts'
import { FAILURE_MARK } from './failure-mark.ts'
import { type Message, toRequestMessages } from './history.ts'
import type { Log } from './log.ts'
import type { Models } from './models.ts'
import { howToGoOn, isOverflow, shorten, withoutNewestTurn } from './overflow.ts'
import { readAnswer, type Sink } from './reading.ts'
import { redactor, toLine } from './redact.ts'
import { shownUrl } from './request.ts'
import type { Session } from './sessions.ts'
import { runCalls, type ToolAudience } from './tool-calls.ts'
import type { Toolbox } from './toolbox.ts'
import type { Wishes } from './wishes.ts'

export const maxRounds = 25

export interface TurnContext {
  readonly config: Config
  readonly completions: Completions
  readonly models: Pick<Models, 'contextLength'>
  readonly session: Session
  readonly audience: ToolAudience
  readonly log: Log
  readonly wishes?: Wishes
  /** Keeps messages beyond this process; the session has them already. */
  keep(messages: readonly Message[]): Promise<void>
}

/** What one request to the endpoint came to. */
type Round =
  | { readonly kind: 'answered'; readonly answer: Answer }
  | { readonly kind: 'failed'; readonly message: string; readonly isOverflow: boolean }
  | { readonly kind: 'cancelled' }

export async function runTurn(
  context: TurnContext,
  question: UserContent,
  cancel: AbortController,
): Promise<StopReason> {
  await remember(context, [{ role: 'user', content: question }])
  const toolbox = await readyToolbox(context, cancel.signal)
  for (let round = 0; toolbox && round < maxRounds; round++) {
    const stop = await runRound(context, toolbox, cancel)
    if (stop !== undefined) return stop
  }
  return cancel.signal.aborted ? 'cancelled' : 'max_turn_requests'
}

/** Why the turn ends, or `undefined` when the model is to be asked again with what its tools gave. */
async function runRound(
  context: TurnContext,
  toolbox: Toolbox,
  cancel: AbortController,
): Promise<StopReason | undefined> {
  const round = await askWithinContext(context, toolbox, cancel.signal)
  if (round.kind === 'cancelled') return 'cancelled'
  if (round.kind === 'failed') {
    await context.audience.update({ ...chunk('agent_message_chunk', round.message), _meta: { [FAILURE_MARK]: true } })
    return 'end_turn'
  }
  const { answer } = round
  await reportUsage(context, answer.totalTokens)
  if (answer.finish === 'content_filter') return 'refusal'
  const calls = answer.finish === 'length' ? [] : answer.calls()
  if (calls.length === 0) {
    if (answer.text !== '') await remember(context, [{ role: 'assistant', content: answer.text }])
    return answer.finish === 'length' ? 'max_tokens' : 'end_turn'
  }
  const results = await runCalls(calls, toolbox, context.audience, cancel)
  await remember(context, [{ role: 'assistant', content: answer.text || null, tool_calls: calls }, ...results])
  return cancel.signal.aborted ? 'cancelled' : undefined
}

/** Asks, and asks again with less while the conversation is too long for the model. */
async function askWithinContext(context: TurnContext, toolbox: Toolbox, signal: AbortSignal): Promise<Round> {
  const { history } = context.session
  const whole = [...history]
  for (;;) {
    const round = await ask(context, toolbox, signal)
    if (round.kind !== 'failed' || !round.isOverflow) {
      const leftOut = whole.length - history.length
      if (leftOut > 0)
        context.log(`the conversation was too long for the model: its ${leftOut} oldest messages are left out`)
      return round
    }
    if (shorten(history)) continue
    history.splice(0, history.length, ...withoutNewestTurn(whole))
    return { ...round, message: `${round.message} ${howToGoOn}` }
  }
}

async function ask(context: TurnContext, toolbox: Toolbox, signal: AbortSignal): Promise<Round> {
  const { config, completions, session, audience, log, wishes = {} } = context
  const messages = toRequestMessages(config.systemPrompt, session.history)
  const sink = new ShownAnswer(audience)
  const redact = redactor(config)
  try {
    const opened = await completions.open({ model: session.model, messages, tools: toolbox.functions, wishes }, signal)
    if (opened.kind === 'failed') return signal.aborted ? { kind: 'cancelled' } : opened
    const { answer, error } = await readAnswer(opened, sink, log)
    if (error === undefined) return { kind: 'answered', answer }
    const isTooLong = !sink.hasShown && isOverflow(200, error)
    await sink.separate()
    return { kind: 'failed', message: toLine(redact(error), 2000), isOverflow: isTooLong }
  } catch (error) {
    if (signal.aborted) return { kind: 'cancelled' }
    if (!(error instanceof EndpointLost)) throw error
    await sink.separate()
    return { kind: 'failed', message: networkMessage(shownUrl(config), reasonOf(error, redact)), isOverflow: false }
  }
}

/** Shows the answer, and knows whether any of it was shown. */
class ShownAnswer implements Sink {
  readonly #audience: ToolAudience
  hasShown = false

  constructor(audience: ToolAudience) {
    this.#audience = audience
  }

  async text(text: string): Promise<void> {
    this.hasShown = true
    await say(this.#audience, text)
  }

  async thought(text: string): Promise<void> {
    await this.#audience.update(chunk('agent_thought_chunk', text))
  }

  /** Sets what follows apart from a partial answer. */
  async separate(): Promise<void> {
    if (this.hasShown) await say(this.#audience, '\n\n')
  }
}

function say(audience: ToolAudience, text: string): Promise<void> {
  return audience.update(chunk('agent_message_chunk', text))
}

function chunk(sessionUpdate: 'agent_message_chunk' | 'agent_thought_chunk', text: string): SessionUpdate {
  return { sessionUpdate, content: { type: 'text', text } }
}

async function reportUsage(context: TurnContext, used: number | undefined): Promise<void> {
  if (used === undefined) return
  const size = context.models.contextLength(context.session.model)
  await context.audience.update({ sessionUpdate: 'usage_update', used, size })
}

async function remember(context: TurnContext, messages: readonly Message[]): Promise<void> {
  context.session.remember(messages)
  await context.keep(messages)
}

/** The session's tools, or `undefined` when the turn was cancelled while servers were still connecting. */
async function readyToolbox(context: TurnContext, signal: AbortSignal): Promise<Toolbox | undefined> {
  const { session, audience } = context
  const toolbox = await Promise.race([session.toolbox, aborted(signal)])
  if (!toolbox || signal.aborted) return undefined
  const lost = session.toldOfLost ? [] : toolbox.lost
  session.toldOfLost = true
  for (const [index, { name, reason }] of lost.entries()) {
    const text = `MCP server "${toLine(name, 100)}" is not available: ${reason}`
    const content = [{ type: 'content' as const, content: { type: 'text' as const, text } }]
    const toolCallId = `server-${session.id}-${index}`
    await audience.update({
      sessionUpdate: 'tool_call',
      toolCallId,
      title: text,
      kind: 'other',
      status: 'failed',
      content,
    })
  }
  return toolbox
}

function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined)
    else signal.addEventListener('abort', () => resolve(undefined), { once: true })
  })
}
