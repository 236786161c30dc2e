/**
 * Problems as people and programs read them. Colour only when the caller says that a terminal is looking.
 *
 * Texts from the file are escaped before they get here, except its name, which is the user's own argument.
 */
import { createColors } from 'picocolors'
import type { Problem, Severity } from './problem.ts'
import type { PoolVariables } from './variables.ts'

/** Lines for a person: the place and the path, then what is wrong and what to do. */
export function formatProblems(problems: readonly Problem[], options: { readonly color?: boolean } = {}): string {
  const colors = createColors(options.color ?? false)
  const paint: Record<Severity, (text: string) => string> = {
    error: colors.red,
    warning: colors.yellow,
    note: colors.cyan,
  }
  const blocks = problems.map((problem) => {
    const head = [colors.bold(placeOf(problem)), paint[problem.severity](problem.severity), problem.path]
    return `${head.filter((part) => part !== '').join('  ')}\n    ${sentenceOf(problem)}`
  })
  return `${blocks.join('\n')}\n${colors.dim(tallyOf(problems))}\n`
}

/** One JSON document for programs; `ok` says whether the bus would start. */
export function formatProblemsJson(
  file: string,
  problems: readonly Problem[],
  variables: readonly PoolVariables[],
): string {
  const ok = problems.every(({ severity }) => severity !== 'error')
  return `${JSON.stringify({ ok, file, problems, variables }, null, 2)}\n`
}

/** What the workers of each pool will see, by where it comes from: names only. */
export function formatVariables(pools: readonly PoolVariables[], options: { readonly color?: boolean } = {}): string {
  const colors = createColors(options.color ?? false)
  const lines = pools.flatMap(({ pool, own, passed, safe, inherits }) => {
    const rest = inherits ? 'all of the bus (inherit_env)' : 'of the bus, as for every worker'
    const rows: readonly (readonly [string, readonly string[]])[] = [
      ['of the pool (env)', own],
      ['of the bus, for this agent', passed],
      [rest, inherits ? [`${safe.length} variables`] : safe],
    ]
    const shown = rows.filter(([, names]) => names.length > 0)
    return [`  ${pool}`, ...shown.map(([from, names]) => `    ${colors.dim(`${from}:`)} ${names.join(', ')}`)]
  })
  return lines.length === 0 ? '' : `variables that the workers will see\n${lines.join('\n')}\n`
}

function placeOf({ file, line, column }: Problem): string {
  return line === 0 ? file : `${file}:${line}:${column}`
}

function sentenceOf({ found, allowed, suggestion }: Problem): string {
  const sentence = `found ${found}; allowed: ${allowed}.`
  if (suggestion === undefined) return sentence
  // What ends in a command ends with it: it is to be pasted.
  const end = /[.?]$|^run [^"]/.test(suggestion) ? '' : '.'
  return `${sentence} ${suggestion[0]?.toUpperCase()}${suggestion.slice(1)}${end}`
}

function tallyOf(problems: readonly Problem[]): string {
  const kinds: Severity[] = ['error', 'warning', 'note']
  const parts = kinds.map((kind) => [problems.filter(({ severity }) => severity === kind).length, kind] as const)
  const named = parts.filter(([count]) => count > 0).map(([count, kind]) => `${count} ${kind}${count === 1 ? '' : 's'}`)
  return named.length === 0 ? 'no problems' : named.join(', ')
}
