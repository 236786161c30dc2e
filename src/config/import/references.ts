/**
 * References to variables as other programs write them, in the spelling of this one.
 *
 * Values never become part of the file: a name stays a name. What cannot be said here (a default, a question to the user)
 * is replaced by the nearest that can, and told.
 */
import { homedir } from 'node:os'
import { type Environment, escapeReferences } from '../environment.ts'

/** How a program writes them: Claude, editors and Gemini much alike; `none`: its texts are as they are. */
export type Spelling = 'dollar' | 'opencode' | 'none'

/** What references are about. */
export interface Surroundings {
  /** Where the servers are to run. */
  readonly folder: string
  /** A default counts where a variable is not set here. */
  readonly environment: Environment
}

export interface Translated {
  readonly value: string
  readonly notes: readonly string[]
}

const PATTERNS: Readonly<Record<Exclude<Spelling, 'none'>, RegExp>> = {
  // ${userHome}, ${input:ID}, ${NAME}, ${env:NAME}, ${NAME:-default}, and $NAME where that is all of it.
  dollar: new RegExp(
    [
      '\\$\\{(?<place>userHome|workspaceFolder|workspaceRoot|pathSeparator|/)\\}',
      '\\$\\{input:(?<input>[^}]*)\\}',
      '\\$\\{(?:env:)?(?<name>[A-Za-z_]\\w*)(?::-(?<fallback>[^}]*))?\\}',
      '^\\$(?<bare>[A-Za-z_]\\w*)$',
    ].join('|'),
    'g',
  ),
  opencode: /\{env:(?<name>[A-Za-z_]\w*)\}/g,
}

/** Variables that name a place. */
const PLACES: Readonly<Record<string, string>> = { HOME: 'userHome', CLAUDE_PROJECT_DIR: 'workspaceFolder' }

type Groups = Readonly<Record<string, string | undefined>>

/** A value of `env` or `headers` or a URL, where this program knows `${NAME}` too. */
export function translateValue(text: string, spelling: Spelling, around: Surroundings): Translated {
  if (spelling === 'none') return { value: escapeReferences(text), notes: [] }
  const notes: string[] = []
  let value = ''
  let from = 0
  for (const match of text.matchAll(PATTERNS[spelling])) {
    value += escapeReferences(text.slice(from, match.index)) + oneOf(match.groups ?? {}, around, notes)
    from = match.index + match[0].length
  }
  return { value: value + escapeReferences(text.slice(from)), notes }
}

/** A word of a command line, where this program replaces nothing: places and defaults are written out, the rest is told. */
export function translateWord(text: string, spelling: Spelling, { folder }: Surroundings): Translated {
  if (spelling === 'none') return { value: text, notes: [] }
  const notes: string[] = []
  const value = text.replace(PATTERNS[spelling], (match, ...found) => {
    const groups = found.at(-1) as Groups
    const place = placeOf(groups['place'] ?? PLACES[groups['name'] ?? ''], folder)
    if (place !== undefined) return place
    const fallback = groups['fallback']
    if (fallback === undefined) notes.push(`an argument holds ${match}, which the bus does not replace: write it out`)
    else notes.push(`an argument holds ${match}, which the bus does not replace: its default is written out`)
    return fallback ?? match
  })
  return { value, notes }
}

function oneOf({ name, bare, fallback, input, place }: Groups, around: Surroundings, notes: string[]): string {
  const { folder, environment } = around
  const variable = name ?? bare
  if (variable !== undefined && fallback !== undefined && !environment[variable]) {
    notes.push(`${variable} is not set, so its default ${JSON.stringify(fallback)} is written out`)
    return escapeReferences(fallback)
  }
  if (variable !== undefined) return `\${${variable}}`
  if (input === undefined) return placeOf(place, folder) ?? ''
  const asked = input.toUpperCase().replace(/\W/g, '_')
  notes.push(`the editor asked for ${JSON.stringify(input)}: set ${asked} before the bus starts`)
  return `\${${asked}}`
}

function placeOf(place: string | undefined, folder: string): string | undefined {
  if (place === undefined) return undefined
  if (place === 'userHome') return homedir()
  return place === 'pathSeparator' || place === '/' ? '/' : folder
}
