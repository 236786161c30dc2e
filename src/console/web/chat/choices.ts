/**
 * What can be chosen in a session, whichever way the agent offers it: modes, models, other options, commands (contract 15.11).
 *
 * It reads what agents write, of which nothing is certain, asks nobody and never throws.
 */

// biome-ignore lint/suspicious/noExplicitAny: of a peer
type Anything = any

export interface Choice {
  /** Of the configuration option; undefined: the mode of the session. */
  readonly configId: string | undefined
  readonly label: string
  readonly current: string
  readonly options: readonly { readonly value: string; readonly name: string }[]
}

export interface Command {
  readonly name: string
  readonly description: string
  /** What may stand behind it. */
  readonly hint: string
}

const MAX_CHOICES = 12
const MAX_OPTIONS = 500
const MAX_COMMANDS = 200
/** By what they are for: a person looks for these words, whatever the agent calls them. */
const LABELS: Readonly<Record<string, string>> = { mode: 'Mode', model: 'Model' }

export class Choices {
  #options: readonly Choice[] = []
  #modes: Choice | undefined
  commands: readonly Command[] = []

  /** A session was opened or brought back. */
  open(answer: Anything): void {
    this.#options = optionsOf(answer?.configOptions)
    this.#modes = modesOf(answer?.modes)
  }

  /** What an update says of them; whether it says anything. */
  take(update: Anything): boolean {
    const kind = update?.sessionUpdate
    if (kind === 'available_commands_update') this.commands = commandsOf(update.availableCommands)
    else if (kind === 'config_option_update') this.#options = optionsOf(update.configOptions)
    else if (kind === 'current_mode_update') this.setMode(update.currentModeId)
    else return false
    return true
  }

  setMode(current: unknown): void {
    if (this.#modes !== undefined && typeof current === 'string') this.#modes = { ...this.#modes, current }
  }

  setOptions(options: unknown): void {
    if (Array.isArray(options)) this.#options = optionsOf(options)
  }

  /** Agents that have the mode as an option and as a mode mean the same. */
  get all(): readonly Choice[] {
    const hasMode = this.#options.some(({ label }) => label === LABELS['mode'])
    return this.#modes === undefined || hasMode ? this.#options : [this.#modes, ...this.#options]
  }
}

function modesOf(modes: Anything): Choice | undefined {
  const options = listOf(modes?.availableModes).flatMap(({ id, name }) =>
    typeof id === 'string' ? [{ value: id, name: String(name ?? id) }] : [],
  )
  if (options.length === 0) return undefined
  return { configId: undefined, label: 'Mode', current: String(modes.currentModeId ?? ''), options }
}

function optionsOf(options: unknown): Choice[] {
  const choices = listOf(options).flatMap((option): Choice[] => {
    const { id, name, category, type, currentValue } = option
    if (typeof id !== 'string' || type !== 'select') return []
    const values = listOf(option.options)
      .flatMap((entry) => (Array.isArray(entry.options) ? listOf(entry.options) : [entry]))
      .flatMap((entry) =>
        typeof entry.value === 'string' ? [{ value: entry.value, name: String(entry.name ?? entry.value) }] : [],
      )
    const label = LABELS[category ?? ''] ?? LABELS[id] ?? String(name ?? id)
    return [{ configId: id, label, current: String(currentValue ?? ''), options: values }]
  })
  return choices.slice(0, MAX_CHOICES)
}

function commandsOf(commands: unknown): Command[] {
  return listOf(commands)
    .flatMap(({ name, description, input }) =>
      typeof name === 'string' && name !== ''
        ? [{ name, description: String(description ?? ''), hint: String(input?.hint ?? '') }]
        : [],
    )
    .slice(0, MAX_COMMANDS)
}

function listOf(value: unknown): Anything[] {
  return Array.isArray(value)
    ? value.slice(0, MAX_OPTIONS).filter((each) => typeof each === 'object' && each !== null)
    : []
}
