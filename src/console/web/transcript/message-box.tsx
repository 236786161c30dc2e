/** Where a message is written: Enter sends it, Shift and Enter is a new line; what could not be sent is there again (contract 15.8, 15.11). */
import type { ComponentChildren } from 'preact'
import { useRef, useState } from 'preact/hooks'
import type { Command } from '../chat/choices.ts'
import { brief, shown } from '../text.ts'

export interface MessageBoxProps {
  /** A turn runs, which can be stopped. */
  readonly isRunning: boolean
  /** Rejects with why it could not be sent; false: it was not, and why is told elsewhere. */
  readonly send: (text: string) => Promise<unknown>
  readonly stop: () => unknown
  /** Nothing can be sent now. */
  readonly isClosed?: boolean
  /** A message goes without words too. */
  readonly mayBeEmpty?: boolean
  /** What the agent takes behind a slash. */
  readonly commands?: readonly Command[]
  readonly pasted?: (event: ClipboardEvent) => void
  /** What goes with the message. */
  readonly children?: ComponentChildren
}

export function MessageBox(props: MessageBoxProps) {
  const { isRunning, isClosed = false, mayBeEmpty = false, commands = [], pasted, children } = props
  const [text, setText] = useState('')
  const [problem, setProblem] = useState<string>()
  const field = useRef<HTMLTextAreaElement>(null)
  const list = useRef<HTMLUListElement>(null)
  const canSend = !isClosed && (text.trim() !== '' || mayBeEmpty)
  const tell = (error: unknown): void => setProblem(error instanceof Error ? error.message : String(error))
  const send = async (): Promise<void> => {
    if (!canSend) return
    setText('')
    setProblem(undefined)
    const isSent = await props.send(text).catch((error) => {
      tell(error)
      return false
    })
    if (isSent === false) setText((typed) => typed || text)
  }
  const fitting = fittingOf(commands, text)
  const take = ({ name }: Command): void => {
    setText(`/${name} `)
    field.current?.focus()
  }
  return (
    <form
      class="message-box"
      onSubmit={(event) => {
        event.preventDefault()
        void send()
      }}
    >
      {fitting.length > 0 && (
        <Commands list={list} commands={fitting} take={take} leave={() => field.current?.focus()} />
      )}
      {children}
      <label class="grow">
        <span class="sr-only">Message</span>
        <textarea
          ref={field}
          aria-label="Message"
          placeholder="Message"
          rows={2}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
          onPaste={pasted}
          onKeyDown={(event) => {
            if (event.key === 'ArrowUp' && fitting.length > 0) {
              event.preventDefault()
              list.current?.querySelector<HTMLElement>('li:last-child button')?.focus()
            }
            if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
            event.preventDefault()
            void send()
          }}
        />
      </label>
      <button type="submit" class="primary" disabled={!canSend}>
        Send
      </button>
      <button type="button" disabled={!isRunning} onClick={() => void Promise.resolve(props.stop()).catch(tell)}>
        Stop
      </button>
      {problem !== undefined && (
        <p class="problem" role="alert">
          {shown(problem)}
        </p>
      )}
    </form>
  )
}

/** Those that begin as what stands behind the slash, until its word is whole. */
function fittingOf(commands: readonly Command[], text: string): readonly Command[] {
  const begun = /^\/(\S*)$/.exec(text)?.[1]?.toLowerCase()
  if (begun === undefined) return []
  return commands.filter(({ name }) => name.toLowerCase().startsWith(begun)).slice(0, 8)
}

interface CommandsProps {
  readonly list: { readonly current: HTMLUListElement | null }
  readonly commands: readonly Command[]
  readonly take: (command: Command) => void
  readonly leave: () => void
}

function Commands({ list, commands, take, leave }: CommandsProps) {
  const press = (event: KeyboardEvent): void => {
    const item = (event.target as Element).closest('li')
    if (event.key === 'Escape') leave()
    const next = { ArrowDown: item?.nextElementSibling, ArrowUp: item?.previousElementSibling }[event.key]
    if (next === undefined) return
    event.preventDefault()
    if (next === null) leave()
    else next.querySelector<HTMLElement>('button')?.focus()
  }
  return (
    <ul ref={list} class="commands" aria-label="Commands" onKeyDown={press}>
      {commands.map((command) => (
        <li key={command.name}>
          <button type="button" class="small" onClick={() => take(command)}>
            <code>/{brief(command.name, 60)}</code>
            <span class="quiet">
              {' '}
              {brief(command.description, 120)}
              {command.hint !== '' && ` [${brief(command.hint, 60)}]`}
            </span>
          </button>
        </li>
      ))}
    </ul>
  )
}
