/** A page's connection to the server of one pool: what it offers, what it asks, and that it comes back when it was lost (contract 15.15). */
import { useEffect, useRef, useState } from 'preact/hooks'
import { me } from '../api.ts'
import type { Properties } from '../schema/value.ts'
import type { Item } from './items.ts'
import { type Asked, McpClient, type Server } from './mcp-client.ts'

export interface OpenQuestion {
  readonly key: number
  readonly params: Properties
  readonly answer: (result: Properties) => void
}

export interface Connection {
  readonly client: McpClient | undefined
  /** Of the last server that answered; undefined: none has yet. */
  readonly server: Server | undefined
  readonly items: readonly Item[] | undefined
  readonly isCut: boolean
  readonly error: unknown
  /** It was there and is not; it is tried again without a click. */
  readonly isLost: boolean
  readonly questions: readonly OpenQuestion[]
  /** What the server logged last. */
  readonly logs: readonly Properties[]
}

const NONE: Connection = {
  client: undefined,
  server: undefined,
  items: undefined,
  isCut: false,
  error: undefined,
  isLost: false,
  questions: [],
  logs: [],
}
const RETRY_MS = 1_500
const SETTLE_MS = 250
const MAX_LOGS = 100

let lastQuestion = 0

export function useConnection(pool: string): Connection & { readonly again: () => void } {
  const [state, setState] = useState<Connection>(NONE)
  const [turn, setTurn] = useState(0)
  const wasUp = useRef(false)
  useEffect(() => {
    const change = (changes: (before: Connection) => Partial<Connection>): void => {
      if (!isOver) setState((before) => ({ ...before, ...changes(before) }))
    }
    let isOver = false
    let timer: ReturnType<typeof setTimeout> | undefined
    const later = (act: () => void, ms: number): void => {
      clearTimeout(timer)
      timer = setTimeout(act, ms)
    }
    const retry = (): void => later(() => setTurn((before) => before + 1), RETRY_MS)

    const client = new McpClient(pool, me.value?.version ?? '', {
      asked: (question) => ask(question, change),
      logged: (line) => change(({ logs }) => ({ logs: [...logs, line].slice(-MAX_LOGS) })),
      listChanged: () => later(() => void list().catch(() => {}), SETTLE_MS),
      closed: ({ byPage }) => {
        // Who never came in is told why, and says when to try again.
        if (byPage || isOver || !wasUp.current) return
        change(() => ({ client: undefined, isLost: true, questions: [] }))
        retry()
      },
    })
    let server: Server | undefined
    const list = async (): Promise<void> => {
      const offer = await client.list(server!)
      change(() => offer)
    }
    const open = async (): Promise<void> => {
      server = await client.connect()
      const offer = await client.list(server)
      wasUp.current = true
      change(() => ({ client, server, ...offer, error: undefined, isLost: false }))
    }
    open().catch((error) => {
      if (wasUp.current && !isOver) retry()
      else change(() => ({ error }))
    })
    return () => {
      isOver = true
      clearTimeout(timer)
      client.close()
    }
  }, [pool, turn])
  const again = (): void => {
    wasUp.current = false
    setState(NONE)
    setTurn((before) => before + 1)
  }
  return { ...state, again }
}

/** Whoever closes the page or is not waited for any more has not answered. */
const CANCELLED = { action: 'cancel' }

function ask(
  { params, signal }: Asked,
  change: (changes: (before: Connection) => Partial<Connection>) => void,
): Promise<Properties> {
  return new Promise((resolve) => {
    const key = ++lastQuestion
    const answer = (result: Properties): void => {
      change(({ questions }) => ({ questions: questions.filter((each) => each.key !== key) }))
      resolve(result)
    }
    if (signal.aborted) return resolve(CANCELLED)
    signal.addEventListener('abort', () => answer(CANCELLED), { once: true })
    change(({ questions }) => ({ questions: [...questions, { key, params, answer }] }))
  })
}
