/** What was said in a session, one entry after the other; whoever is at its end stays there (contract 15.8). */
import { Component } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { brief, clock, shown } from '../text.ts'
import { Blocks } from './blocks.tsx'
import type { Entry, Question } from './entries.ts'
import { Markdown } from './markdown.tsx'
import { ToolView } from './tool.tsx'

export interface TranscriptProps {
  readonly entries: readonly Entry[]
  /** Asks for what was said before; undefined: there is nothing. */
  readonly earlier?: (() => void) | undefined
}

const NEAR_END_PX = 40

export function Transcript({ entries, earlier }: TranscriptProps) {
  const box = useRef<HTMLElement>(null)
  const isAtEnd = useRef(true)
  const height = useRef(0)
  const first = useRef<string | undefined>(undefined)
  useLayoutEffect(() => {
    const element = box.current!
    const firstNow = entries[0]?.key
    // What is put in front of it leaves in place what is read.
    if (isAtEnd.current) element.scrollTop = element.scrollHeight
    else if (firstNow !== first.current) element.scrollTop += element.scrollHeight - height.current
    first.current = firstNow
    height.current = element.scrollHeight
  })
  return (
    <section
      ref={box}
      class="transcript"
      aria-label="Transcript"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls
      tabIndex={0}
      onScroll={({ currentTarget: { scrollTop, clientHeight, scrollHeight } }) => {
        isAtEnd.current = scrollTop + clientHeight >= scrollHeight - NEAR_END_PX
        if (scrollTop === 0) earlier?.()
      }}
    >
      {earlier !== undefined && (
        <p>
          <button type="button" class="small" onClick={earlier}>
            Show what was said before
          </button>
        </p>
      )}
      {entries.map((entry) => (
        <EntryView key={entry.key} entry={entry} seq={entry.seq} />
      ))}
    </section>
  )
}

interface EntryProps {
  readonly entry: Entry
  readonly seq: number
}

/** Drawn anew only when something was said of it. */
class EntryView extends Component<EntryProps> {
  override shouldComponentUpdate({ seq }: EntryProps): boolean {
    return seq !== this.props.seq
  }

  render() {
    return <EntryOf entry={this.props.entry} />
  }
}

function EntryOf({ entry }: { readonly entry: Entry }) {
  if (entry.kind === 'tool') return <ToolView tool={entry.tool} />
  if (entry.kind === 'plan') return <Plan steps={entry.steps} />
  if (entry.kind === 'question') return <Asked question={entry.question} />
  if (entry.kind === 'note') return <p class={entry.isBad ? 'note bad' : 'note'}>{shown(entry.text)}</p>
  if (entry.kind === 'thought')
    return (
      <details class="thought">
        <summary>thought ({linesIn(entry.text)})</summary>
        <p class="prose">{shown(entry.text)}</p>
      </details>
    )
  return (
    <div class={`said ${entry.kind}`}>
      <span class="speaker">{entry.kind === 'person' ? 'you' : 'agent'}</span>
      <div class="words">
        {entry.kind === 'person' ? <p class="prose">{shown(entry.text)}</p> : <Markdown text={entry.text} />}
        <Blocks blocks={entry.others} />
      </div>
    </div>
  )
}

function linesIn(text: string): string {
  const count = text.trim().split('\n').length
  return count === 1 ? '1 line' : `${count} lines`
}

const MARKS: Readonly<Record<string, string>> = { completed: '✓', in_progress: '◐', pending: '○' }

function Plan({ steps }: { readonly steps: Extract<Entry, { kind: 'plan' }>['steps'] }) {
  return (
    <div class="said plan">
      <span class="speaker">plan</span>
      <ol class="words">
        {steps.map(({ content, status }, index) => (
          <li key={index} class={MARKS[status] === undefined ? 'pending' : status}>
            <span aria-hidden="true">{MARKS[status] ?? '○'}</span>{' '}
            <span class="sr-only">{status.replace('_', ' ')}: </span>
            {brief(content, 300)}
          </li>
        ))}
      </ol>
    </div>
  )
}

/** One that waits stands out elsewhere; here is that it was asked. */
function Asked({ question: { params, method, at, answeredBy } }: { readonly question: Question }) {
  return (
    <p class="note asked">
      <span aria-hidden="true">?</span> {brief(questionTitle(method, params), 300)}{' '}
      <time dateTime={at}>{clock(at)}</time>
      {answeredBy === undefined ? ': not answered yet' : `: answered by ${brief(answeredBy)}`}
    </p>
  )
}

/** What it is about, in the agent's words. */
// biome-ignore lint/suspicious/noExplicitAny: of a peer
export function questionTitle(method: string, params: any): string {
  const words = [params?.toolCall?.title, params?.message].find((text) => typeof text === 'string' && text !== '')
  return words ?? method
}
