/**
 * What an aggregate does with each method of a client, as a table: answers it itself, or passes it to the member that is
 * meant (contract 13.2, 13.6, 13.7, 13.11). What is in no row is unknown.
 */
import type { Envelope } from '../wire/envelope.ts'
import { FIELD } from '../wire/fields.ts'
import { hasKey, membersOf, type Span } from '../wire/json-array.ts'
import { splice } from '../wire/splice.ts'
import { instructionsOf, ownerOfTemplate } from './catalogue.ts'
import * as eras from './eras.ts'
import { listPage } from './lists.ts'
import { KINDS, type Kind } from './member-list.ts'
import type { Pending } from './pending.ts'
import { lendResult, unsupportedVersion } from './replies.ts'
import type { Seat } from './seat.ts'
import { callTool } from './tool-calls.ts'

type Serve = (seat: Seat, pending: Pending, line: Envelope) => void

interface Row {
  readonly serve: Serve
  /** It must be known what members offer: it waits for lists that have never been had. */
  readonly needsLists?: true
}

const MAX_SUBSCRIPTIONS = 4_096
const LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency']
const CAPABILITIES = {
  tools: { listChanged: true },
  resources: { subscribe: true, listChanged: true },
  prompts: { listChanged: true },
  completions: {},
  logging: {},
} as const

export class Methods {
  readonly #rows: ReadonlyMap<string, Row>

  constructor() {
    const lists = (Object.keys(KINDS) as Kind[]).map((kind): [string, Row] => [
      KINDS[kind].method,
      { serve: (seat, pending, line) => list(kind, seat, pending, line), needsLists: true },
    ])
    this.#rows = new Map<string, Row>([
      ['initialize', { serve: initialize }],
      ['server/discover', { serve: discover }],
      ['ping', { serve: (seat, pending) => seat.answerEmpty(pending) }],
      ...lists,
      ['tools/call', { serve: callTool, needsLists: true }],
      ['prompts/get', { serve: getPrompt, needsLists: true }],
      ['resources/read', { serve: readResource, needsLists: true }],
      ['resources/subscribe', { serve: subscribe, needsLists: true }],
      ['resources/unsubscribe', { serve: unsubscribe, needsLists: true }],
      ['completion/complete', { serve: complete, needsLists: true }],
      ['logging/setLevel', { serve: setLevel }],
      ['subscriptions/listen', { serve: listen, needsLists: true }],
      ...['tasks/get', 'tasks/result', 'tasks/cancel', 'tasks/update'].map((name): [string, Row] => [
        name,
        { serve: passTask },
      ]),
    ])
  }

  request(seat: Seat, pending: Pending, line: Envelope): void {
    const { method } = pending
    const row = this.#rows.get(method)
    if (row === undefined) return seat.refuse(pending, 'unknown_method', { method })
    const asked = line.text(FIELD.metaProtocolVersion)
    if (pending.era === 'modern' && asked !== undefined && asked !== eras.MODERN_REVISION)
      return seat.reply(pending, unsupportedVersion(pending.spelling, asked, SUPPORTED))
    if (!row.needsLists || seat.aggregate.isListed) return row.serve(seat, pending, line)
    const { bytes } = line
    seat.aggregate.whenListed(() => seat.again(pending, bytes, (read) => row.serve(seat, pending, read)))
  }

  notice(seat: Seat, method: string, line: Envelope): void {
    if (method === 'notifications/cancelled') return seat.cancel(line)
    if (method === 'notifications/progress') return seat.questions.progress(line)
    if (method !== 'notifications/roots/list_changed') return
    for (const link of seat.links) if (link.era === 'legacy') link.send(splice(line, []))
  }
}

const SUPPORTED: readonly string[] = [eras.MODERN_REVISION, ...[...eras.LEGACY_REVISIONS].reverse()]

function serverOf({ aggregate }: Seat) {
  const { spec } = aggregate
  const instructions = instructionsOf(spec, (pool) => aggregate.knownOf(pool))
  return {
    capabilities: CAPABILITIES,
    serverInfo: { name: spec.id, version: '0.1.0' },
    ...(instructions === undefined ? {} : { instructions }),
  }
}

/** The members of an object, as JSON. */
function membersIn(value: object): string {
  return JSON.stringify(value).slice(1, -1)
}

/** At once, whoever is up: the revision that was asked for, if it is known. */
function initialize(seat: Seat, pending: Pending, line: Envelope): void {
  const asked = line.text(FIELD.protocolVersion) ?? ''
  const isKnown = (eras.LEGACY_REVISIONS as readonly string[]).includes(asked)
  const protocolVersion = isKnown ? asked : eras.NEWEST_LEGACY
  seat.greet(line)
  seat.answer(pending, membersIn({ protocolVersion, ...serverOf(seat) }), {
    hasBatches: protocolVersion === eras.BATCH_REVISION,
  })
}

function discover(seat: Seat, pending: Pending): void {
  const server = serverOf(seat)
  const _meta = { [eras.META.serverInfo]: server.serverInfo }
  const found = { supportedVersions: SUPPORTED, ...server, _meta }
  seat.answer(pending, `"resultType":"complete",${eras.UNKEPT},${membersIn(found)}`)
}

function list(kind: Kind, seat: Seat, pending: Pending, line: Envelope): void {
  const { aggregate, view } = seat
  const { isEmpty, missing } = aggregate
  if (isEmpty) return seat.refuse(pending, 'no_member', { members: missing })
  const page = listPage({ view, kind, era: pending.era, missing }, line)
  if (page === undefined) return seat.refuse(pending, 'bad_cursor')
  seat.sawList(kind)
  lendResult(pending.spelling, page.members, page.more, (answer) => seat.reply(pending, answer))
}

const NOWHERE: Span = { start: 0, end: 0 }

function paramsOf(line: Envelope): Span {
  if (!line.has(FIELD.params)) return NOWHERE
  return { start: line.startOf(FIELD.params), end: line.endOf(FIELD.params) }
}

/** Where the only member of an object with this key lies: of what stands twice nobody can tell which is meant. */
function onlyMember({ bytes }: Envelope, { start, end }: Span, key: string): Span | undefined {
  const meant = [...membersOf(bytes, start, end)].filter((member) => hasKey(bytes, member, key))
  return meant.length === 1 ? meant[0] : undefined
}

/** What stands there, if it is text. */
function textAt({ bytes }: Envelope, span: Span | undefined): string | undefined {
  const value: unknown = span === undefined ? undefined : JSON.parse(bytes.utf8Slice(span.start, span.end))
  return typeof value === 'string' ? value : undefined
}

function getPrompt(seat: Seat, pending: Pending, line: Envelope): void {
  passPrompt(seat, pending, line, onlyMember(line, paramsOf(line), 'name'))
}

/** To the member that has the prompt which is named there, under its own name. */
function passPrompt(seat: Seat, pending: Pending, line: Envelope, named: Span | undefined): void {
  const name = textAt(line, named)
  const prompt = name === undefined ? undefined : seat.aggregate.catalogue.prompts.get(name)
  if (named === undefined || prompt === undefined) return seat.refuseUnknown(pending, 'unknown_prompt', { name })
  if (seat.hasMoved('prompts', prompt.listed))
    return seat.refuse(pending, 'tool_moved', { name: prompt.listed, pool: prompt.pool })
  const link = seat.linkTo(prompt.pool)
  if (link === undefined) return seat.refuseUnknown(pending, 'unknown_prompt', { name })
  seat.pass(pending, link, line, [{ start: named.start, end: named.end, text: JSON.stringify(prompt.own) }])
}

/** To who has the resource; else it is nobody's. */
function readResource(seat: Seat, pending: Pending, line: Envelope): void {
  const uri = line.text(FIELD.uri)
  const link = uri === undefined ? undefined : seat.linkFor(uri)
  if (link === undefined) return seat.refuseUnknown(pending, 'unknown_resource', { uri })
  seat.pass(pending, link, line)
}

function subscribe(seat: Seat, pending: Pending, line: Envelope): void {
  const uri = line.text(FIELD.uri)
  const link = uri === undefined ? undefined : seat.linkFor(uri)
  if (link === undefined) return seat.refuseUnknown(pending, 'unknown_resource', { uri })
  if (link.era === 'legacy') return seat.pass(pending, link, line)
  if (seat.subscriptions.count >= MAX_SUBSCRIPTIONS) return seat.refuse(pending, 'too_many_subscriptions')
  seat.subscriptions.subscribe(link, uri!)
  seat.answerEmpty(pending)
}

function unsubscribe(seat: Seat, pending: Pending, line: Envelope): void {
  const uri = line.text(FIELD.uri)
  const link = uri === undefined ? undefined : seat.linkFor(uri)
  if (link === undefined) return seat.refuseUnknown(pending, 'unknown_resource', { uri })
  if (link.era === 'legacy') return seat.pass(pending, link, line)
  seat.subscriptions.unsubscribe(link, uri!)
  seat.answerEmpty(pending)
}

function complete(seat: Seat, pending: Pending, line: Envelope): void {
  const ref = onlyMember(line, paramsOf(line), 'ref') ?? NOWHERE
  const part = (key: string): Span | undefined => onlyMember(line, ref, key)
  if (textAt(line, part('type')) === 'ref/prompt') return passPrompt(seat, pending, line, part('name'))
  const uri = textAt(line, part('uri')) ?? ''
  const pool = ownerOfTemplate(seat.aggregate.catalogue, uri) ?? seat.memories.uris.find(uri)
  const link = pool === undefined ? undefined : seat.linkTo(pool)
  if (link === undefined) return seat.refuseUnknown(pending, 'unknown_resource', { uri })
  seat.pass(pending, link, line)
}

function setLevel(seat: Seat, pending: Pending, line: Envelope): void {
  const level = line.text(FIELD.level)
  if (level === undefined || !LEVELS.includes(level)) return seat.refuse(pending, 'bad_level', { level, known: LEVELS })
  seat.level = level
  seat.answerEmpty(pending)
}

function listen(seat: Seat, pending: Pending, line: Envelope): void {
  if (!seat.subscriptions.listen(pending, line)) seat.refuse(pending, 'too_many_subscriptions')
}

/** A task is known by the member whose result named it. */
function passTask(seat: Seat, pending: Pending, line: Envelope): void {
  const pool = seat.memories.tasks.find(line.text(FIELD.taskId) ?? '')
  const link = pool === undefined ? undefined : seat.linkTo(pool)
  if (link === undefined) return seat.refuse(pending, 'task_not_owned')
  seat.pass(pending, link, line)
}
