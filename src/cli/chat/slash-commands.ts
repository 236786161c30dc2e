/**
 * What the user can do at the prompt beside asking: the commands behind a slash, as a table.
 *
 * What the agent itself offers behind a slash is sent to it. A line that begins with a space is always a question.
 */
import { printable } from '../../wire/printable.ts'
import type { Choose, Option } from './chooser.ts'
import type { Conversation } from './conversation.ts'
import type { Screen } from './screen.ts'
import type { SettingName } from './settings.ts'

export interface SlashContext {
  readonly conversation: Conversation
  readonly screen: Screen
  readonly choose: Choose
}

/** `question`: it is for the agent. */
export type SlashOutcome = 'question' | 'done' | 'leave'

interface SlashCommand {
  readonly usage: string
  readonly about: string
  run(context: SlashContext, rest: string): Promise<SlashOutcome> | SlashOutcome
}

const SLASH = /^\/([a-z][a-z0-9_:-]*)(?:\s+(.*))?$/i
const STAY = ''

const COMMANDS: Readonly<Record<string, SlashCommand>> = {
  help: { usage: '/help', about: 'what can be typed here', run: help },
  model: {
    usage: '/model [NAME]',
    about: 'show or choose the model',
    run: (context, rest) => set(context, 'model', rest),
  },
  mode: { usage: '/mode [NAME]', about: 'show or choose the mode', run: (context, rest) => set(context, 'mode', rest) },
  sessions: { usage: '/sessions [ID]', about: 'list sessions and go on with one', run: sessions },
  new: { usage: '/new', about: 'begin a new session', run: begin },
  quit: { usage: '/quit', about: 'leave, as Ctrl-D does', run: () => 'leave' },
  exit: { usage: '', about: '', run: () => 'leave' },
}

/** Does what a line says that is no question. */
export async function runSlash(context: SlashContext, line: string): Promise<SlashOutcome> {
  const found = SLASH.exec(line.trimEnd())
  if (found === null) return 'question'
  const [, name = '', rest = ''] = found
  if (context.conversation.settings.commands.some((command) => command.name === name)) return 'question'
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
  if (command !== undefined) return command.run(context, rest.trim())
  context.screen.warn(
    `there is no command /${name}: /help lists them; to send the line as it is, begin it with a space`,
  )
  return 'done'
}

/** For the Tab key: commands that begin like this. */
export function completeSlash(line: string, offered: readonly string[]): string[] {
  if (!line.startsWith('/')) return []
  const names = Object.entries(COMMANDS).flatMap(([name, { usage }]) => (usage === '' ? [] : [`/${name}`]))
  return [...new Set([...names, ...offered.map((name) => `/${name}`)])].filter((name) => name.startsWith(line))
}

function help({ conversation, screen }: SlashContext): SlashOutcome {
  const own = Object.values(COMMANDS).filter(({ usage }) => usage !== '')
  const offered = conversation.settings.commands.map(({ name, description }) => ({
    usage: printable(`/${name}`),
    about: printable(description.replace(/\s+/g, ' ')).slice(0, 120),
  }))
  const width = Math.max(...[...own, ...offered.slice(0, 50)].map(({ usage }) => usage.length))
  const lines = (rows: readonly Pick<SlashCommand, 'usage' | 'about'>[]): string[] =>
    rows.map(({ usage, about }) => `  ${usage.padEnd(width)}  ${about}`)
  screen.print([...lines(own), ...(offered.length > 0 ? ['of the agent:', ...lines(offered)] : [])])
  screen.note(
    'Ctrl-C cancels an answer, Ctrl-D leaves, the arrow keys bring back what was asked. Pasted lines stay together.',
  )
  return 'done'
}

async function set(context: SlashContext, name: SettingName, wanted: string): Promise<SlashOutcome> {
  const { conversation, screen, choose } = context
  const setting = conversation.settings.find(name)
  if (setting === undefined || setting.options.length === 0) {
    screen.note(`this agent offers no ${name} to choose`)
    return 'done'
  }
  const options = setting.options.map(({ value, name: label, about }) => ({ value, label, hint: about }))
  const value = wanted === '' ? await choose(`Which ${name}?`, options, setting.current) : oneOf(options, wanted)
  if (value === undefined && wanted === '') return 'done'
  if (value === undefined) {
    screen.warn(`no ${name} ${JSON.stringify(wanted)}: there are ${options.map((option) => option.value).join(', ')}`)
    return 'done'
  }
  await conversation.choose(setting, value)
  screen.note(`${name}: ${options.find((option) => option.value === value)?.label ?? value}`)
  return 'done'
}

/** By its whole name, or a beginning that only one has. */
function oneOf(options: readonly Option[], wanted: string): string | undefined {
  const lower = wanted.toLowerCase()
  const isExact = ({ value, label }: Option): boolean => value === wanted || label.toLowerCase() === lower
  const isBegun = ({ value, label }: Option): boolean =>
    value.toLowerCase().startsWith(lower) || label.toLowerCase().startsWith(lower)
  const exact = options.find(isExact)
  const begun = options.filter(isBegun)
  return exact?.value ?? (begun.length === 1 ? begun[0]!.value : undefined)
}

async function sessions({ conversation, screen, choose }: SlashContext, wanted: string): Promise<SlashOutcome> {
  const listed = await conversation.listSessions()
  if (listed === undefined) {
    screen.note('this agent does not list its sessions')
    return 'done'
  }
  const options = listed.map(({ sessionId, title, updatedAt, cwd }) => ({
    value: sessionId,
    label: title || sessionId,
    hint: [sessionId === conversation.sessionId ? 'this one' : '', updatedAt ?? '', cwd].filter(Boolean).join(', '),
  }))
  if (options.length === 0 || (options.length === 1 && options[0]!.value === conversation.sessionId)) {
    screen.note('there is no other session')
    return 'done'
  }
  if (!conversation.canLoad) {
    screen.print(options.map(({ label, hint }) => printable(`  ${label}  ${hint}`)))
    screen.note('this agent cannot bring one back')
    return 'done'
  }
  const stay = { value: STAY, label: 'stay here' }
  const chosen = wanted === '' ? await choose('Go on with which session?', [stay, ...options]) : oneOf(options, wanted)
  if (chosen === undefined && wanted !== '') screen.warn(`no session ${JSON.stringify(wanted)}: /sessions lists them`)
  if (!chosen || chosen === conversation.sessionId) return 'done'
  await conversation.load(chosen)
  screen.note(`session ${chosen}`)
  return 'done'
}

async function begin({ conversation, screen }: SlashContext): Promise<SlashOutcome> {
  await conversation.newSession()
  screen.note('a new session')
  return 'done'
}
