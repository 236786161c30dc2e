/**
 * Lets the user choose one of several things: with the arrow keys, or by number where the terminal can only print.
 *
 * Labels are made printable here, since they come from agents.
 */
import { createInterface } from 'node:readline/promises'
import { isCancel, select } from '@clack/prompts'
import { clip } from '../../wire/columns.ts'
import { printable } from '../../wire/printable.ts'

export interface Option {
  readonly value: string
  readonly label: string
  readonly hint?: string | undefined
}

/** The chosen value, or `undefined` when nothing was. */
export type Choose = (title: string, options: readonly Option[], current?: string) => Promise<string | undefined>

const MAX_LABEL_COLUMNS = 70
const SHOWN_AT_ONCE = 12

export const chooseWithKeys: Choose = async (title, options, current) => {
  const choices = options.map(({ value, label, hint }) => ({
    value,
    label: shown(label),
    ...(hint ? { hint: shown(hint) } : {}),
  }))
  const initial = current === undefined ? {} : { initialValue: current }
  const chosen = await select({ message: title, options: choices, maxItems: SHOWN_AT_ONCE, ...initial })
  return isCancel(chosen) ? undefined : chosen
}

export const chooseByNumber: Choose = async (title, options) => {
  const lines = createInterface({ input: process.stdin, output: process.stderr, terminal: false })
  const ended = new Promise<undefined>((resolve) => lines.once('close', () => resolve(undefined)))
  try {
    const list = options.map(({ label }, index) => `  ${index + 1}) ${shown(label)}\n`).join('')
    const answer = await Promise.race([lines.question(`${title}\n${list}number: `), ended])
    return options[Number(answer?.trim()) - 1]?.value
  } finally {
    lines.close()
  }
}

function shown(text: string): string {
  return clip(printable(text.replace(/\s+/g, ' ')), MAX_LABEL_COLUMNS)
}
