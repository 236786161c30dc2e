/**
 * Problems as people and programs read them. Colour only when the caller says that a terminal is looking.
 *
 * Texts from the file are escaped before they get here, except its name, which is the user's own argument.
 */
import { createColors } from 'picocolors'
import type { Problem, Severity } from './problem.ts'

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
export function formatProblemsJson(file: string, problems: readonly Problem[]): string {
  const ok = problems.every(({ severity }) => severity !== 'error')
  return `${JSON.stringify({ ok, file, problems }, null, 2)}\n`
}

function placeOf({ file, line, column }: Problem): string {
  return line === 0 ? file : `${file}:${line}:${column}`
}

function sentenceOf({ found, allowed, suggestion }: Problem): string {
  const sentence = `found ${found}; allowed: ${allowed}.`
  return suggestion === undefined
    ? sentence
    : `${sentence} ${suggestion[0]?.toUpperCase()}${suggestion.slice(1)}${/[.?]$/.test(suggestion) ? '' : '.'}`
}

function tallyOf(problems: readonly Problem[]): string {
  const kinds: Severity[] = ['error', 'warning', 'note']
  const parts = kinds.map((kind) => [problems.filter(({ severity }) => severity === kind).length, kind] as const)
  const named = parts.filter(([count]) => count > 0).map(([count, kind]) => `${count} ${kind}${count === 1 ? '' : 's'}`)
  return named.length === 0 ? 'no problems' : named.join(', ')
}
