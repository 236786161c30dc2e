/** Sessions over the API: which there are, what is said in one, and taking part (contract 15.8, 15.18). */
import { type ApiCall, type ApiRoute, badParameter, countOf, limitOf, notFound, ROLES } from './api-call.ts'
import type { ConsolePort, SessionRow } from './port.ts'
import { titleOf } from './question-title.ts'
import type { SessionDrives } from './session-drives.ts'
import { readLines, rowOf } from './session-lines.ts'

const STATES = ['attached', 'detached', 'stored', 'lost'] as const
type State = (typeof STATES)[number]
/** The words of the configuration that would keep a session. */
const KEEPING_KEY = 'sessions.keep_sec'
const MAX_PROMPT_PARTS = 64

export function sessionRoutes(port: ConsolePort, drives: SessionDrives): ApiRoute[] {
  const act =
    (does: (call: ApiCall, row: SessionRow) => unknown) =>
    async (call: ApiCall): Promise<unknown> =>
      (await does(call, rowOf(port, call))) ?? {}
  const route = (method: ApiRoute['method'], path: readonly string[], serve: ApiRoute['serve']): ApiRoute => {
    const roles = method === 'GET' ? ROLES.all : ROLES.actors
    return { method, path: ['sessions', ...path], roles, serve }
  }
  return [
    route('GET', [], (call) => list(port, call)),
    route('GET', ['*'], (call) => {
      const row = rowOf(port, call)
      return { ...describe(port, row), driving: drives.isDriving(call, row) }
    }),
    route('GET', ['*', 'lines'], (call) => readLines(port, call, limitOf(call.query))),
    route(
      'POST',
      ['*', 'attach'],
      act((call, row) => drives.attach(call, row)),
    ),
    route(
      'POST',
      ['*', 'detach'],
      act((call, row) => drives.detach(call, row)),
    ),
    route(
      'POST',
      ['*', 'prompt'],
      act((call, row) => drives.prompt(call, row, promptOf(call.body))),
    ),
    route(
      'POST',
      ['*', 'cancel'],
      act((call, row) => drives.cancel(call, row)),
    ),
    route(
      'POST',
      ['*', 'answers', '*'],
      act((call, row) => drives.answer(call, row, questionOf(call.parts[1]), answerOf(call.body))),
    ),
    route(
      'DELETE',
      ['*'],
      act((call, row) => end(port, call, row)),
    ),
  ]
}

function list(port: ConsolePort, { admitted, query }: ApiCall): unknown {
  const limit = limitOf(query)
  const state = query.get('state') ?? undefined
  if (state !== undefined && !STATES.includes(state as State))
    throw badParameter(`state is one of ${STATES.join(', ')}.`)
  const wish = {
    pool: query.get('pool') ?? undefined,
    state: state as State | undefined,
    wantsAll: true,
    limit,
    cursor: query.get('cursor') ?? undefined,
  }
  const page = port.sessions.page(admitted.identity, wish)
  if (page === undefined) throw badParameter('cursor is what next_cursor said.')
  const items = page.sessions.map((row) => describe(port, row))
  const isFirst = wish.cursor === undefined && state === undefined
  const { passing } = isFirst ? port.sessions.live(admitted.identity) : { passing: [] }
  const notKept = passing.filter(({ pool }) => (wish.pool ?? pool) === pool).map(passingRow)
  return { items, not_kept: notKept, ...(page.next === undefined ? {} : { next_cursor: page.next }) }
}

/** What the topic `sessions` shows: those that live, with what waits in them. */
export function takeLive(port: ConsolePort, { admitted }: Pick<ApiCall, 'admitted'>): unknown {
  const { kept, passing } = port.sessions.live(admitted.identity)
  return { items: kept.map((row) => describe(port, row)), not_kept: passing.map(passingRow) }
}

function passingRow(row: object): object {
  return { ...row, state: 'not_kept', key: KEEPING_KEY }
}

function describe(port: ConsolePort, row: SessionRow): object {
  if (row.questions === 0) return { ...row, waiting: [] }
  const waiting = port.sessions
    .openQuestions()
    .filter(
      ({ session, pool, principal }) => session === row.session && pool === row.pool && principal === row.principal,
    )
    .map((question) => ({
      question: question.seq,
      since: new Date(question.sinceMs).toISOString(),
      method: question.method,
      title: titleOf(question),
    }))
  return { ...row, waiting }
}

function promptOf({ text, prompt }: ApiCall['body']): readonly unknown[] {
  if (typeof text === 'string' && text.trim() !== '' && prompt === undefined) return [{ type: 'text', text }]
  const isList = Array.isArray(prompt) && prompt.length > 0 && prompt.length <= MAX_PROMPT_PARTS && text === undefined
  if (isList && prompt.every((part) => typeof part?.type === 'string')) return prompt
  throw badParameter(`A prompt is {"text": "..."}, or {"prompt": [...]} with 1 to ${MAX_PROMPT_PARTS} blocks.`)
}

function questionOf(text = ''): number {
  const question = countOf(text)
  if (question === undefined) throw notFound('question of this number')
  return question
}

/** An option of a permission, or the whole result of anything else. */
function answerOf({ option, result }: ApiCall['body']): object {
  if (typeof option === 'string' && result === undefined) return { outcome: { outcome: 'selected', optionId: option } }
  if (typeof result === 'object' && result !== null && !Array.isArray(result) && option === undefined) return result
  throw badParameter('An answer is {"option": "ID"}, or {"result": {...}}.')
}

async function end(port: ConsolePort, { admitted, web, query }: ApiCall, row: SessionRow): Promise<void> {
  const isDeleted = query.get('delete')
  if (isDeleted !== null && isDeleted !== 'true' && isDeleted !== 'false')
    throw badParameter('delete is true or false.')
  const client = port.openClient(admitted, web.connection.peer, true)
  try {
    const { session, pool } = row
    await client.ask('bus::sessions.end', { session, pool, delete: isDeleted === 'true' })
  } finally {
    client.leave()
  }
}
