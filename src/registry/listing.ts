/**
 * The agents of a registry as rows of data and as lines for people.
 *
 * Everything in it comes from an index that somebody else wrote: text is escaped before it is shown. Values of variables
 * are never part of a row.
 */
import type { ListedAgent } from './catalogue.ts'
import { describeDistributions } from './distribution.ts'
import type { Origin } from './document.ts'
import { printable } from './printable.ts'
import type { Registry } from './resolve.ts'

export interface AgentRow {
  readonly id: string
  readonly name: string
  readonly version: string
  readonly description: string
  readonly origin: Origin
  readonly distributions: readonly string[]
  /** Whether this platform has a distribution of it. */
  readonly supported: boolean
  readonly installed: boolean
}

export async function listAgents(registry: Registry): Promise<readonly AgentRow[]> {
  return Promise.all([...registry.catalogue.agents.values()].map((agent) => rowOf(registry, agent)))
}

export async function rowOf(registry: Registry, { entry, origin }: ListedAgent): Promise<AgentRow> {
  const installed = await registry.isInstalled(entry.id)
  return {
    id: entry.id,
    name: entry.name,
    version: entry.version,
    description: entry.description,
    origin,
    distributions: describeDistributions(entry),
    supported: installed !== undefined,
    installed: installed === true,
  }
}

/** Colours, so that this file need not know whether there is a terminal. */
export interface Paint {
  readonly bold: (text: string) => string
  readonly dim: (text: string) => string
  readonly green: (text: string) => string
  readonly red: (text: string) => string
}

const LONGEST_KINDS = 28

export function drawList(rows: readonly AgentRow[], columns: number, paint: Paint): string {
  const idWidth = Math.max(...rows.map(({ id }) => id.length), 5)
  const versionWidth = Math.max(...rows.map(({ version }) => version.length), 7)
  const kindWidth = Math.max(...rows.map((row) => kindsOf(row).length), 4)
  const room = Math.max(20, columns - idWidth - versionWidth - kindWidth - 8)
  const head = `  ${'agent'.padEnd(idWidth)}  ${'version'.padEnd(versionWidth)}  ${'from'.padEnd(kindWidth)}  what it is`
  const lines = rows.map((row) => {
    const what = row.supported ? shorten(`${row.name}: ${row.description}`, room) : 'not for this platform'
    const cells = [row.version.padEnd(versionWidth), kindsOf(row).padEnd(kindWidth), paint.dim(what)]
    return `${markOf(row, paint)} ${paint.bold(row.id.padEnd(idWidth))}  ${cells.join('  ')}`
  })
  return [paint.dim(head), ...lines, paint.dim('● ready to start without a download')].join('\n')
}

function markOf(row: AgentRow, paint: Paint): string {
  if (!row.supported) return paint.red('×')
  return row.installed ? paint.green('●') : ' '
}

/** Without the platforms of a binary where this one is among them: they are a matter of `show`. */
function kindsOf(row: AgentRow): string {
  const texts = row.supported ? row.distributions.map((text) => text.split(' ')[0]) : row.distributions
  return shorten(texts.join(', '), LONGEST_KINDS)
}

function shorten(text: string, room: number): string {
  const safe = printable(text)
  return safe.length > room ? `${safe.slice(0, room - 1)}…` : safe
}
