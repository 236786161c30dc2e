/** What clients say of themselves to a bus that tells its callers apart: in their first line, and again later (contract 9.3). */

import { TOOLS } from './access-scenario.ts'
import { call } from './client-speech.ts'
import { MAX_FIRST_BYTES } from './gatehouse.ts'
import type { ClientLine, Member } from './line.ts'
import type { SimClient } from './sim-client.ts'
import type { Offer } from './visit.ts'

/** True: it has said all that it has to say now. */
export function presentItself(client: SimClient): boolean {
  const { chance } = client.world
  const { manner, principal } = client.visit!
  if (manner === 'silent' || (manner === 'certificate' && principal === undefined)) return true
  if (!client.hasSpoken) return FIRST[manner](client)
  if (chance.is(0.015)) showAgain(client)
  else if (chance.is(0.01)) ask(client, 'bus::whoami', undefined)
  else return false
  return true
}

const FIRST = {
  token: (client) => show(client, client.world.chance.weigh(KINDS)),
  none: (client) => show(client, 'nothing'),
  rude: beRude,
  huge: (client) => {
    client.blurt(`{"method":"bus::open","params":{"token":"${'x'.repeat(MAX_FIRST_BYTES)}"}}`)
    return true
  },
  certificate: maybeOpen,
  local: maybeOpen,
  door: maybeOpen,
} as const satisfies Record<string, (client: SimClient) => boolean>

const KINDS: readonly (readonly [number, Offer['kind']])[] = [
  [12, 'good'],
  [1, 'bad'],
  [1, 'expired'],
  [0.5, 'unknowable'],
]

/** Whoever is in already may choose its pool with its first line, and show whom else it is. */
function maybeOpen(client: SimClient): boolean {
  const { chance } = client.world
  if (chance.is(0.2)) return show(client, chance.weigh(KINDS))
  if (client.addressing !== 'open') return false
  ask(client, 'bus::open', undefined)
  return true
}

function show(client: SimClient, kind: Offer['kind']): boolean {
  const { gatehouse } = client.world
  const { principalWanted } = client.visit!
  const offer = gatehouse!.makeOffer(kind, principalWanted, true)
  client.visit!.offers.push(offer)
  ask(client, 'bus::open', offer)
  return true
}

/** Something else than a credential, where one must be shown. */
function beRude(client: SimClient): boolean {
  const { chance, gatehouse } = client.world
  client.visit!.offers.push(gatehouse!.makeOffer('nothing', client.visit!.principalWanted, true))
  if (chance.is(0.2)) client.blurt('hello')
  else call(client, chance.pick(['work', 'initialize', 'tools/call']), { isRequest: chance.is(0.8) })
  return true
}

/** A fresh credential of the same one extends the connection; any other changes nothing. */
function showAgain(client: SimClient): void {
  const { chance, gatehouse } = client.world
  const { principalWanted, offers } = client.visit!
  const principal = chance.is(0.6) ? principalWanted : chance.pick(gatehouse!.principals)
  const offer = gatehouse!.makeOffer(chance.weigh(KINDS), principal, false)
  offers.push(offer)
  ask(client, 'bus::open', offer)
}

function ask(client: SimClient, method: string, offer: Offer | undefined): ClientLine {
  const { chance } = client.world
  const isFirst = offer?.isFirst ?? method === 'bus::open'
  const isRequest = method === 'bus::whoami' || chance.is(0.6)
  const pool = isFirst && client.addressing === 'open' ? (chance.is(0.03) ? 'nowhere' : client.pool) : undefined
  const idRaw = isRequest ? `"o${client.world.lines.length}"` : undefined
  if (isRequest) client.patience++
  const { token } = offer ?? {}
  const params = JSON.stringify({ ...(token && { token }), ...(pool && { pool }) })
  const members: Member[] = [
    ['method', JSON.stringify(method)],
    ['params', params],
  ]
  if (isRequest) members.unshift(['id', ''])
  const line = client.say({ kind: isRequest ? 'request' : 'notification', method, idRaw, members })
  if (offer !== undefined) offer.line = line
  line.offer = offer
  line.pool = pool
  return line
}

/** The name of a tool as a member of params, in any spelling; the value that it has, if it has one. */
export function drawTool(client: SimClient): { readonly text: string; readonly tool: string | undefined } {
  const { chance } = client.world
  const tool = chance.pick(TOOLS)
  const roll = chance.next()
  if (roll < 0.8) return { text: `,"name":"${tool}"`, tool }
  if (roll < 0.9) {
    const code = tool.charCodeAt(0).toString(16).padStart(4, '0')
    return { text: `,"n\\u0061me":"\\u${code}${tool.slice(1)}"`, tool }
  }
  const other = chance.pick(TOOLS)
  const text = chance.pick(['', ',"name":7', `,"name":"${tool}","name":"${other}"`, ',"name":null'])
  return { text, tool: undefined }
}

/** The tools of a server, as it lists them: entries with a name, and now and then one without. */
export function drawTools(chance: SimClient['world']['chance']): readonly { name: string | undefined; raw: string }[] {
  const entries = TOOLS.filter(() => chance.is(0.8)).map((name) => ({ name, raw: `{"name":"${name}","x":[1,{}]}` }))
  if (!chance.is(0.2)) return entries
  return [...entries, { name: undefined, raw: '{"title":"read_file"}' }]
}
