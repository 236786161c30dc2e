/**
 * Everything that the members of an aggregate offer, under the names by which clients know it (contract 13.4 to 13.7).
 *
 * Made anew from what the members were last heard to offer, in the order of the file. Pure: it asks nobody. Invariant: a
 * name, and a URI, belongs to one member.
 */
import { dressItem, fieldsOf, type Item } from './items.ts'
import type { Kind, Known } from './member-list.ts'
import { hashedName, isShown, listedName, prefixedName } from './names.ts'
import { type AggregateSpec, BOUNDS, type MemberSpec } from './spec.ts'
import { Trials, UriTemplate } from './uri-templates.ts'

export interface Entry {
  readonly pool: string
  /** Its own name, and the same as JSON. */
  readonly own: string
  readonly ownText: string
  /** Under which it is listed; of resources and templates their URI. */
  readonly listed: string
  /** As it is listed. */
  readonly text: Buffer
}

export interface TemplateEntry extends Entry {
  readonly template: UriTemplate
}

export interface Catalogue {
  readonly version: number
  /** Nobody was waited for when it was made. */
  readonly isSettled: boolean
  readonly tools: ReadonlyMap<string, Entry>
  readonly prompts: ReadonlyMap<string, Entry>
  readonly resources: ReadonlyMap<string, Entry>
  readonly templates: readonly TemplateEntry[]
  /** Whose names of tools and prompts were before. */
  readonly past: Readonly<Record<NamedKind, Past>>
  /** What could not have its name. */
  readonly conflicts: readonly Conflict[]
}

/** What is known by a name. */
export type NamedKind = 'tools' | 'prompts'

export interface Past {
  /** Of names that belonged to another member before: since which version that is so. */
  readonly moved: ReadonlyMap<string, number>
  /** To whom names belonged last, also those that are not listed now. */
  readonly owners: ReadonlyMap<string, string>
}

export interface Conflict {
  readonly pool: string
  readonly own: string
  readonly name: string
  /** The member that has the name, and the name under which this one is listed. */
  readonly keptBy: string
  readonly listed: string
}

/** Names of the bus's own tools, which no member has. */
export const FIND_TOOLS = 'find_tools'
export const CALL_TOOL = 'call_tool'
const BUS = 'the bus'

const NO_PAST: Past = { moved: new Map(), owners: new Map() }

export const EMPTY: Catalogue = {
  version: 0,
  isSettled: false,
  tools: new Map(),
  prompts: new Map(),
  resources: new Map(),
  templates: [],
  past: { tools: NO_PAST, prompts: NO_PAST },
  conflicts: [],
}

type KnownOf = (pool: string) => Known | undefined

/** What is known of the members; settled: nobody is waited for, so that whose a name is now others may rely on. */
export interface Offers {
  readonly knownOf: KnownOf
  readonly isSettled: boolean
}

export function makeCatalogue(spec: AggregateSpec, { knownOf, isSettled }: Offers, before: Catalogue): Catalogue {
  const conflicts: Conflict[] = []
  const reserved = spec.mode === 'search' ? [FIND_TOOLS, CALL_TOOL] : []
  const tools = nameAll(spec, knownOf, 'tools', { reserved, conflicts })
  const prompts = nameAll(spec, knownOf, 'prompts', { reserved: [], conflicts })
  const version = before.version + 1
  return {
    version,
    isSettled,
    tools,
    prompts,
    resources: gatherUris(spec, knownOf, 'resources'),
    templates: [...gatherUris(spec, knownOf, 'templates').values()].map((entry) => ({
      ...entry,
      template: new UriTemplate(entry.listed),
    })),
    past: isSettled
      ? {
          tools: pastOf(before.past.tools, tools, version),
          prompts: pastOf(before.past.prompts, prompts, version),
        }
      : before.past,
    conflicts,
  }
}

interface Naming {
  readonly reserved: readonly string[]
  readonly conflicts: Conflict[]
}

function nameAll(spec: AggregateSpec, knownOf: KnownOf, kind: Kind, naming: Naming): Map<string, Entry> {
  const taken = new Map<string, Entry>()
  const keeperOf = (name: string): string | undefined =>
    taken.get(name)?.pool ?? (naming.reserved.includes(name) ? BUS : undefined)
  for (const member of spec.members)
    for (const item of shownItems(member, knownOf, kind)) {
      const name = listedName(member, item.name, spec.maxNameLength)
      const listed = freeName(member, item.name, spec.maxNameLength, (each) => keeperOf(each) === undefined)
      if (listed !== name) {
        const keptBy = keeperOf(name)!
        naming.conflicts.push({ pool: member.pool, own: item.name, name, keptBy, listed: listed ?? '' })
      }
      if (listed !== undefined) taken.set(listed, entryOf(member.pool, item, listed))
    }
  return taken
}

/** Its name, or with its default prefix, or with its hash; undefined: its member has said the same twice. */
function freeName(
  member: MemberSpec,
  own: string,
  maxLength: number,
  isFree: (name: string) => boolean,
): string | undefined {
  for (const nameBy of [listedName, prefixedName, hashedName]) {
    const name = nameBy(member, own, maxLength)
    if (isFree(name)) return name
  }
  return undefined
}

/** Each own name once: of two the first. */
function shownItems(member: MemberSpec, knownOf: KnownOf, kind: Kind): Item[] {
  const seen = new Set<string>()
  return (knownOf(member.pool)?.lists[kind] ?? []).filter(({ name }) => {
    if (seen.has(name) || !isShown(member, name)) return false
    seen.add(name)
    return true
  })
}

/** What was made of an item, which is the same until its member is listed anew. */
const made = new WeakMap<Item, Entry>()

function entryOf(pool: string, item: Item, listed: string): Entry {
  const known = made.get(item)
  if (known?.pool === pool && known.listed === listed) return known
  const text = dressItem(item, pool, item.uri === undefined ? listed : undefined)
  const entry = { pool, own: item.name, ownText: JSON.stringify(item.name), listed, text }
  made.set(item, entry)
  return entry
}

/** The same URI twice: the earlier member's. */
function gatherUris(spec: AggregateSpec, knownOf: KnownOf, kind: 'resources' | 'templates'): Map<string, Entry> {
  const taken = new Map<string, Entry>()
  for (const { pool } of spec.members)
    for (const item of knownOf(pool)?.lists[kind] ?? [])
      if (!taken.has(item.uri!)) taken.set(item.uri!, entryOf(pool, item, item.uri!))
  return taken
}

function pastOf(before: Past, named: ReadonlyMap<string, Entry>, version: number): Past {
  const owners = new Map(before.owners)
  const moved = new Map(before.moved)
  for (const [name, { pool }] of named) {
    const owner = owners.get(name)
    if (owner !== undefined && owner !== pool) moved.set(name, version)
    owners.delete(name)
    owners.set(name, pool)
  }
  for (const name of owners.keys()) {
    if (owners.size <= BOUNDS.rememberedNames) break
    owners.delete(name)
    moved.delete(name)
  }
  return { moved, owners }
}

/** Who has the resource: who lists it, else whose template it fits. */
export function ownerOfUri({ resources, templates }: Catalogue, uri: string): string | undefined {
  const trials = new Map<string, Trials>()
  const trialsAt = (pool: string): Trials => trials.get(pool) ?? trials.set(pool, new Trials()).get(pool)!
  return resources.get(uri)?.pool ?? templates.find(({ pool, template }) => template.matches(uri, trialsAt(pool)))?.pool
}

/** A template, by which completions are asked for, is named as it is listed. */
export function ownerOfTemplate(catalogue: Catalogue, uri: string): string | undefined {
  return catalogue.templates.find(({ listed }) => listed === uri)?.pool ?? ownerOfUri(catalogue, uri)
}

/** The instructions of the members, each headed by its pool, within bounds (contract 13.2). */
export function instructionsOf({ members }: AggregateSpec, knownOf: KnownOf): string | undefined {
  const parts: string[] = []
  let bytes = 0
  for (const { pool } of members) {
    const text = knownOf(pool)?.instructions
    if (text === undefined) continue
    const part = `# ${pool}\n${cutAt(text, BOUNDS.instructionBytes)}`
    bytes += Buffer.byteLength(part) + 2
    if (bytes > BOUNDS.allInstructionBytes) break
    parts.push(part)
  }
  return parts.length === 0 ? undefined : parts.join('\n\n')
}

function cutAt(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text)
  if (bytes.length <= maxBytes) return text
  // Half a character at the end becomes none.
  return bytes
    .subarray(0, maxBytes)
    .toString('utf8')
    .replace(/\ufffd+$/, '')
}

/** What is told of a tool beside its name. */
export function toolFields(entry: Entry): Readonly<Record<string, unknown>> {
  return fieldsOf(entry.text)
}
