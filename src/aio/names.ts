/**
 * Names of agents and methods: `agent::method`, split at the first `::`. Nothing else is a name.
 *
 * Other spellings seen in the wild (`agent.method`, `method@agent`) are not read: one message must not mean two things.
 */
export const SEPARATOR = '::'
/** The namespace of the bus itself; no agent may have it. */
export const BUS = 'bus'
export const HELP = 'help'

const AGENT = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/
const METHOD = /^[A-Za-z_][A-Za-z0-9_.]*$/
const METHOD_CHARACTERS = 256

export interface Name {
  readonly agent: string
  readonly method: string
}

export function isAgentName(text: string): boolean {
  return AGENT.test(text)
}

/** undefined: not a name. */
export function splitName(text: string): Name | undefined {
  const at = text.indexOf(SEPARATOR)
  if (at === -1) return undefined
  const agent = text.slice(0, at)
  const method = text.slice(at + SEPARATOR.length)
  if (!AGENT.test(agent) || method.length > METHOD_CHARACTERS || !METHOD.test(method)) return undefined
  return { agent, method }
}

export function joinName(agent: string, method: string): string {
  return `${agent}${SEPARATOR}${method}`
}

/** Whether a message with this method is for the gateway; with AIO off only the bus's own methods are. */
export function isGatewayMethod(method: string, aioOn: boolean): boolean {
  if (method.startsWith(`${BUS}${SEPARATOR}`)) return true
  return aioOn && (method === HELP || method.includes(SEPARATOR))
}
