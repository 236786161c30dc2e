/**
 * Which variables the workers of each pool will see, and from where; and those that a program is documented to read, that
 * are set here, and that it will not get.
 *
 * Names only: no value is looked at beyond whether there is one.
 */
import { basename } from 'node:path'
import type { AgentLaunch, BusConfig, Launch } from './bus-config.ts'
import { AGENT_VARIABLES, type Environment, workerEnvironment } from './environment.ts'
import type { Finding } from './problem.ts'
import type { Source } from './source.ts'

export interface PoolVariables {
  readonly pool: string
  /** Of the pool's own `env`; with what they refer to, where they do. */
  readonly own: readonly string[]
  /** Taken from the environment of the bus because the agent is documented to read them. */
  readonly passed: readonly string[]
  /** What every worker gets of it. */
  readonly safe: readonly string[]
  /** The pool asks for all of it. */
  readonly inherits: boolean
}

interface VariableContext {
  readonly config: BusConfig
  readonly source: Source
  readonly environment: Environment
}

/** Pools that run no process have none. */
export function variablesOf({ config, source, environment }: VariableContext): readonly PoolVariables[] {
  return config.bus.pools.flatMap(({ id }, index): PoolVariables[] => {
    const launch = config.launches.get(id)
    if (launch === undefined || !('inheritEnv' in launch)) return []
    const names = Object.keys(workerEnvironment(launch, environment)).filter((name) => !(name in launch.env))
    const documented = 'agent' in launch ? AGENT_VARIABLES[launch.agent] : []
    return [
      {
        pool: id,
        own: Object.keys(launch.env).map((name) => withReference(name, rawEnv(source, index)[name])),
        passed: names.filter((name) => documented.includes(name)),
        safe: names.filter((name) => !documented.includes(name)),
        inherits: launch.inheritEnv,
      },
    ]
  })
}

function withReference(name: string, text: unknown): string {
  const [reference] = typeof text === 'string' ? (/(?<!\$)\$\{[A-Za-z_]\w*\}/.exec(text) ?? []) : []
  return reference === undefined || reference === `\${${name}}` ? name : `${name} (${reference})`
}

function rawEnv(source: Source, index: number): Readonly<Record<string, unknown>> {
  const { pools } = source.value as { pools?: readonly { env?: unknown }[] }
  const env = pools?.[index]?.env
  return typeof env === 'object' && env !== null ? (env as Record<string, unknown>) : {}
}

const OPENAI = AGENT_VARIABLES.openai.filter((name) => name.startsWith('OPENAI_'))
const ANTHROPIC = ['ANTHROPIC_API_KEY', 'ANTHROPIC_AUTH_TOKEN', 'ANTHROPIC_BASE_URL', 'ANTHROPIC_MODEL']
const GOOGLE = ['GEMINI_API_KEY', 'GOOGLE_API_KEY', 'GOOGLE_CLOUD_PROJECT', 'GOOGLE_CLOUD_LOCATION']

/** Programs by the words of their command line, or their id in the registry, and what they are documented to read. */
const DOCUMENTED: readonly { readonly word: RegExp; readonly variables: readonly string[] }[] = [
  { word: /^openai-agent$/, variables: OPENAI },
  { word: /^(@zed-industries\/)?claude(-code|-agent)?(-acp)?$|^claude-acp$/, variables: ANTHROPIC },
  { word: /^(@google\/)?gemini(-cli)?$/, variables: GOOGLE },
  {
    word: /^(@zed-industries\/|@openai\/)?codex(-acp)?$/,
    variables: ['OPENAI_API_KEY', 'OPENAI_BASE_URL', 'CODEX_API_KEY'],
  },
  { word: /^qwen(-code)?$/, variables: ['OPENAI_API_KEY', 'OPENAI_BASE_URL', 'OPENAI_MODEL'] },
  { word: /^goose$/, variables: ['GOOSE_PROVIDER', 'GOOSE_MODEL', 'OPENAI_API_KEY', 'ANTHROPIC_API_KEY'] },
  { word: /^opencode(-ai)?$/, variables: ['OPENAI_API_KEY', 'ANTHROPIC_API_KEY', 'GEMINI_API_KEY'] },
  { word: /server-github$/, variables: ['GITHUB_PERSONAL_ACCESS_TOKEN'] },
]

/** For `check`: what was exported for the program and does not reach it. */
export function variablesArePassed({ config, environment }: VariableContext): Finding[] {
  return config.bus.pools.flatMap(({ id }, index): Finding[] => {
    const launch = config.launches.get(id)
    if (launch === undefined || !('inheritEnv' in launch)) return []
    if (isDemo(launch) && environment['OPENAI_BASE_URL']) return [unusedEndpoint(index)]
    const seen = workerEnvironment(launch, environment)
    const missing = documentedFor(launch).filter((name) => environment[name] && !(name in seen))
    if (missing.length === 0) return []
    const advice = missing.map((name) => `"${name}": "\${${name}}"`).join(', ')
    return [
      {
        severity: 'warning',
        path: ['pools', index],
        found: `${missing.join(', ')}, which ${missing.length === 1 ? 'is' : 'are'} set here and not passed on`,
        allowed: 'variables that the pool names: a worker gets no others of the environment of the bus',
        suggestion: `add "env": { ${advice} }`,
      },
    ]
  })
}

function isDemo(launch: Launch): launch is AgentLaunch {
  return 'agent' in launch && launch.agent === 'openai' && launch.args.includes('--demo')
}

function unusedEndpoint(index: number): Finding {
  return {
    severity: 'warning',
    path: ['pools', index, 'args'],
    found: '"--demo", while OPENAI_BASE_URL is set',
    allowed: 'the built-in demo, which asks no endpoint',
    suggestion: 'remove "--demo" to talk to the endpoint',
  }
}

function documentedFor(launch: Launch): readonly string[] {
  if ('agent' in launch) return AGENT_VARIABLES[launch.agent]
  const words = 'registry' in launch ? [launch.registry] : 'command' in launch ? [launch.command, ...launch.args] : []
  const names = words.flatMap((word) => [word.replace(/@[^/@]*$/, ''), basename(word)])
  return DOCUMENTED.find(({ word }) => names.some((name) => word.test(name)))?.variables ?? []
}
