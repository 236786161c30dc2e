/**
 * The plan of an agent: whole when its steps change, and a line for each step that is done.
 */
import type { PlanEntry } from '@agentclientprotocol/sdk'
import { clip } from '../../wire/columns.ts'
import { printable } from '../../wire/printable.ts'
import type { Colors } from './paint.ts'

const MARKS: Readonly<Record<string, string>> = { pending: '·', in_progress: '▸', completed: '✓' }
const MAX_STEPS = 50

export class PlanView {
  readonly #paint: Colors
  #steps: readonly PlanEntry[] = []

  constructor(paint: Colors) {
    this.#paint = paint
  }

  /** The lines to show for a plan that has come, and whether they are all of it. */
  update(entries: readonly PlanEntry[], columns: number): { readonly isWhole: boolean; readonly lines: string[] } {
    const before = this.#steps
    this.#steps = entries.slice(0, MAX_STEPS)
    const isSame =
      before.length === this.#steps.length && this.#steps.every(({ content }, at) => content === before[at]!.content)
    return { isWhole: !isSame, lines: isSame ? this.#changes(before, columns) : this.#whole(entries.length, columns) }
  }

  #whole(count: number, columns: number): string[] {
    const more = count - this.#steps.length
    const lines = this.#steps.map((step) => this.#line(step, columns))
    return [this.#paint.bold('Plan'), ...lines, ...(more > 0 ? [this.#paint.dim(`  … ${more} more`)] : [])]
  }

  /** That the next step has begun goes without saying. */
  #changes(before: readonly PlanEntry[], columns: number): string[] {
    const isDone = ({ status }: PlanEntry): boolean => status === 'completed'
    const done = this.#steps.filter(isDone).length
    const newly = this.#steps.filter((step, at) => isDone(step) && !isDone(before[at]!))
    return newly.map(
      (step, at) =>
        this.#line(step, columns) + this.#paint.dim(`  ${done - newly.length + at + 1}/${this.#steps.length}`),
    )
  }

  #line({ status, content }: PlanEntry, columns: number): string {
    const mark = MARKS[status] ?? '·'
    const text = clip(printable(content.replace(/\s+/g, ' ')), Math.max(columns - 12, 20))
    const paint = { completed: this.#paint.dim, in_progress: this.#paint.bold }[status as string] ?? String
    return `  ${status === 'completed' ? this.#paint.green(mark) : mark} ${paint(text)}`
  }
}
