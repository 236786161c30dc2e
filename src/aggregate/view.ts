/**
 * What one caller sees of an aggregate: the lists as they are sent, page by page, and which names may be called.
 *
 * A view is made for a catalogue and for rights; all callers with the same rights share it. A tool is judged by the name
 * under which it is listed and by its own: a deny of either hides it (contract 13.6).
 */
import { createHash } from 'node:crypto'
import { isToolDenied, mayUseToolAs, type Rights } from '../kernel/rights.ts'
import type { Catalogue, Entry } from './catalogue.ts'
import { type SpokenEra, UNKEPT } from './eras.ts'
import { KINDS, type Kind } from './member-list.ts'
import { type AggregateSpec, BOUNDS } from './spec.ts'

/** A tool of the bus's own, as it is listed. */
export interface OwnTool {
  readonly name: string
  readonly text: Buffer
}

export class View {
  readonly catalogue: Catalogue
  readonly #spec: AggregateSpec
  readonly #rights: Rights | undefined
  readonly #own: readonly OwnTool[]
  readonly #lists = new Map<Kind, readonly Buffer[]>()
  readonly #pages = new Map<string, Buffer>()
  readonly #digests = new Map<Kind, string>()
  #tools: readonly Entry[] | undefined

  constructor(spec: AggregateSpec, catalogue: Catalogue, rights: Rights | undefined, own: readonly OwnTool[]) {
    this.#spec = spec
    this.catalogue = catalogue
    this.#rights = rights
    this.#own = own
  }

  /** The tool, if the caller may know of it. */
  tool(listed: string): Entry | undefined {
    const entry = this.catalogue.tools.get(listed)
    return entry !== undefined && this.#maySee(entry) ? entry : undefined
  }

  /** All that can be called, whether listed or found. */
  get tools(): readonly Entry[] {
    return (this.#tools ??= [...this.catalogue.tools.values()].filter((entry) => this.#maySee(entry)))
  }

  /** A tool of the bus's own with this name is there, unless the caller is denied it: leave to search needs no words. */
  hasOwn(tool: string): boolean {
    if (this.#spec.mode !== 'search' || !this.#own.some(({ name }) => name === tool)) return false
    return this.#rights === undefined || !isToolDenied(this.#rights, { pool: this.#spec.id, tool })
  }

  #maySee({ pool, own, listed }: Entry): boolean {
    if (this.#rights?.tools === undefined) return true
    return mayUseToolAs(this.#rights, [
      { pool: this.#spec.id, tool: listed },
      { pool, tool: own },
    ])
  }

  /** How many items the list has. */
  count(kind: Kind): number {
    return this.#list(kind).length
  }

  /** The members of the result that hold this page of the list, without the cursor. */
  page(kind: Kind, from: number, era: SpokenEra): Buffer {
    const name = `${kind} ${from} ${era}`
    const known = this.#pages.get(name)
    if (known !== undefined) return known
    const items = this.#list(kind).slice(from, from + BOUNDS.pageItems)
    const parts = items.flatMap((item, index) => (index === 0 ? [item] : [COMMA, item]))
    const tail = era === 'modern' ? `],"resultType":"complete",${UNKEPT}` : ']'
    const page = Buffer.concat([Buffer.from(`"${KINDS[kind].key}":[`), ...parts, Buffer.from(tail)])
    this.#pages.set(name, page)
    return page
  }

  /** Changes when the list does. */
  digest(kind: Kind): string {
    const known = this.#digests.get(kind)
    if (known !== undefined) return known
    const hash = createHash('sha256')
    for (const item of this.#list(kind)) hash.update(item).update('\n')
    const digest = hash.digest('base64url').slice(0, 22)
    this.#digests.set(kind, digest)
    return digest
  }

  #list(kind: Kind): readonly Buffer[] {
    const known = this.#lists.get(kind)
    if (known !== undefined) return known
    const list = this.#make(kind)
    this.#lists.set(kind, list)
    return list
  }

  #make(kind: Kind): readonly Buffer[] {
    const { prompts, resources, templates } = this.catalogue
    if (kind === 'tools') return this.#listTools()
    const entries = kind === 'templates' ? templates : [...(kind === 'prompts' ? prompts : resources).values()]
    return entries.map(({ text }) => text)
  }

  #listTools(): readonly Buffer[] {
    if (this.#spec.mode === 'all') return this.tools.map(({ text }) => text)
    const pinned = this.#spec.pin.flatMap((name) => this.tool(name)?.text ?? [])
    const own = this.#own.filter(({ name }) => this.hasOwn(name)).map(({ text }) => text)
    return [...own, ...new Set(pinned)]
  }
}

const COMMA = Buffer.from(',')
