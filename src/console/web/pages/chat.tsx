/** A conversation with any agent that speaks ACP (contract 15.11): the view of a session, with a new one. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { may } from '../api.ts'
import type { Choice } from '../chat/choices.ts'
import { Conversation, type View } from '../chat/conversation.ts'
import { addPictures, filesIn, PICTURE_TYPES, type Picture } from '../chat/pictures.ts'
import { isLive } from '../feed.ts'
import { useLoaded } from '../parts/loaded.tsx'
import { Empty, Failed, Loading } from '../parts/state.tsx'
import { hrefOf, parts, pathOf, query, setQuery } from '../router.ts'
import { brief, shown } from '../text.ts'
import { MessageBox } from '../transcript/message-box.tsx'
import { QuestionView } from '../transcript/question.tsx'
import { Transcript } from '../transcript/transcript.tsx'

interface Pool {
  readonly id: string
  readonly protocol: string | null
  readonly ready: number
  readonly keeps_sessions: boolean
  readonly cwd: string | null
}

interface Pools {
  readonly items: readonly Pool[]
  readonly max_message_bytes: number
}

const RETRY_MS = 1_500

export function Chat() {
  const { value, error, again } = useLoaded<Pools>('pools')
  const id = parts.value[1]
  const pool = value?.items.find((each) => each.id === id)
  return (
    <>
      <h1>Chat</h1>
      {value === undefined &&
        (error === undefined ? <Loading what="the pools" /> : <Failed error={error} retry={again} />)}
      {value !== undefined && id === undefined && <PoolList pools={value.items} />}
      {value !== undefined && id !== undefined && pool === undefined && (
        <Empty title="There is no such pool">
          <p>
            It is not in the configuration, or you may not use it. <a href={hrefOf('chat')}>All pools</a>
          </p>
        </Empty>
      )}
      {pool !== undefined && <PoolChat key={pool.id} pool={pool} maxMessageBytes={value!.max_message_bytes} />}
    </>
  )
}

const SPEAKS: Readonly<Record<string, string>> = { acp: 'an agent', mcp: 'tools (MCP), no agent' }

function PoolList({ pools }: { readonly pools: readonly Pool[] }) {
  if (pools.length === 0)
    return (
      <Empty title="No pool to talk to">
        <p>
          A pool with <code>"agent": "openai"</code>, or with the command of any agent that speaks ACP, can be talked to
          here.
        </p>
      </Empty>
    )
  // What is no agent stands last.
  const sorted = [...pools].sort((one, other) => Number(one.protocol === 'mcp') - Number(other.protocol === 'mcp'))
  return (
    <ul class="chat-pools">
      {sorted.map(({ id, protocol, ready, keeps_sessions: isKept }) => (
        <li key={id}>
          <a class="card" href={hrefOf(pathOf('chat', id))}>
            <strong>{brief(id)}</strong>
            <span class="quiet">
              {SPEAKS[protocol ?? ''] ?? 'not known yet what it speaks'} · {ready} ready
              {isKept ? ' · sessions are kept' : ''}
            </span>
          </a>
        </li>
      ))}
    </ul>
  )
}

interface PoolChatProps {
  readonly pool: Pool
  readonly maxMessageBytes: number
}

function PoolChat({ pool, maxMessageBytes }: PoolChatProps) {
  if (pool.protocol === 'mcp')
    return (
      <Empty title={`${brief(pool.id)} is no agent`}>
        <p>
          It speaks MCP: what it offers is under <a href={hrefOf(pathOf('tools', pool.id))}>Tools</a>.{' '}
          <a href={hrefOf('chat')}>All pools</a>
        </p>
      </Empty>
    )
  return <Talk pool={pool} maxMessageBytes={maxMessageBytes} />
}

/** The conversation of the address: another session there is another one. */
function useConversation(pool: Pool): { conversation: Conversation; renew: () => void } {
  const asked = query.value.get('session') ?? undefined
  const [turn, setTurn] = useState(0)
  const announced = useRef(asked)
  const conversation = useMemo(() => new Conversation(pool.id, pool.cwd ?? '/'), [pool.id, pool.cwd, turn])
  const mayTalk = may('admin', 'user')
  useEffect(() => {
    if (asked !== undefined && mayTalk) void conversation.load(asked)
    return () => conversation.close()
  }, [conversation])
  const { session, canLoad, phase } = conversation.view.value
  useEffect(() => {
    if (phase !== 'open' || (asked ?? undefined) === (canLoad ? session : undefined)) return
    announced.current = canLoad ? session : undefined
    setQuery({ session: announced.current ?? null })
  }, [phase, session, canLoad])
  const renew = (): void => setTurn((before) => before + 1)
  useEffect(() => {
    if (asked === announced.current) return
    announced.current = asked
    renew()
  }, [asked])
  return {
    conversation,
    renew: () => {
      announced.current = undefined
      setQuery({ session: null })
      renew()
    },
  }
}

function Talk({ pool, maxMessageBytes }: PoolChatProps) {
  const { conversation, renew } = useConversation(pool)
  const view = conversation.view.value
  const mayTalk = may('admin', 'user')
  const isReached = isLive.value !== false
  useEffect(() => {
    if (view.phase !== 'cut' || !isReached) return
    const timer = setTimeout(() => void conversation.reconnect(), RETRY_MS)
    return () => clearTimeout(timer)
  }, [conversation, view.phase, isReached])
  const isOpen = (key: string): boolean => view.open.some(({ number }) => `question-${number}` === key)
  return (
    <section class="session-pane chat" aria-label={`Chat with ${brief(pool.id)}`}>
      <Head pool={pool} view={view} renew={renew} choose={(configId, value) => conversation.choose(configId, value)} />
      <Said
        view={view}
        pool={pool}
        entries={view.entries.filter(({ kind, key }) => kind !== 'question' || !isOpen(key))}
      />
      <div class="waiting">
        {view.open.map((question) => (
          <QuestionView
            key={question.number}
            question={question}
            hint="The agent waits for this."
            answer={(body) => conversation.answer(question.number, body)}
          />
        ))}
      </div>
      <Trouble view={view} retry={renew} />
      {mayTalk ? (
        <Writing conversation={conversation} view={view} maxMessageBytes={maxMessageBytes} />
      ) : (
        <p class="quiet">Your role looks on and talks to nobody. What is said in kept sessions is under Sessions.</p>
      )}
    </section>
  )
}

const STATES: Readonly<Record<View['phase'], string>> = {
  new: 'no session yet',
  opening: 'opening …',
  open: 'idle',
  cut: 'connection lost',
  gone: 'agent has ended',
  lost: 'session lost',
  refused: 'cannot be talked to',
}
const TURNS = { running: 'answers …', stopping: 'stops …' } as const

interface HeadProps {
  readonly pool: Pool
  readonly view: View
  readonly renew: () => void
  readonly choose: (configId: string | undefined, value: string) => void
}

function Head({ pool, view, renew, choose }: HeadProps) {
  const { phase, turn, session, agentName, choices } = view
  const state = phase === 'open' && turn !== 'idle' ? TURNS[turn] : STATES[phase]
  return (
    <div class="session-head">
      <div class="row">
        <h2>{brief(agentName ?? pool.id, 80)}</h2>
        <div class="row actions">
          {session !== undefined && (
            <button type="button" onClick={renew}>
              New conversation
            </button>
          )}
          <a href={hrefOf('chat')}>All pools</a>
        </div>
      </div>
      <p class="quiet" role="status">
        {brief(pool.id)} · {state}
        {session !== undefined && (
          <>
            {' · '}
            {pool.keeps_sessions ? (
              <a href={hrefOf(`${pathOf('sessions', session)}?pool=${encodeURIComponent(pool.id)}`)}>
                {brief(session, 60)}
              </a>
            ) : (
              <code>{brief(session, 60)}</code>
            )}
          </>
        )}
      </p>
      {choices.all.length > 0 && (
        <div class="row choices-row">
          {choices.all.map((choice) => (
            <Choose
              key={choice.configId ?? 'mode'}
              choice={choice}
              isClosed={phase !== 'open'}
              choose={(value) => choose(choice.configId, value)}
            />
          ))}
        </div>
      )}
    </div>
  )
}

interface ChooseProps {
  readonly choice: Choice
  readonly isClosed: boolean
  readonly choose: (value: string) => void
}

function Choose({ choice: { label, current, options }, isClosed, choose }: ChooseProps) {
  const isKnown = options.some(({ value }) => value === current)
  return (
    <label class="inline">
      {brief(label, 40)}{' '}
      <select value={current} disabled={isClosed} onChange={(event) => choose(event.currentTarget.value)}>
        {!isKnown && <option value={current}>{brief(current, 60)}</option>}
        {options.map(({ value, name }) => (
          <option key={value} value={value}>
            {brief(name, 60)}
          </option>
        ))}
      </select>
    </label>
  )
}

interface SaidProps {
  readonly view: View
  readonly pool: Pool
  readonly entries: View['entries']
}

function Said({ view: { phase, hasForgotten, session }, pool, entries }: SaidProps) {
  if (entries.length === 0)
    return (
      <div class="transcript-empty">
        {phase === 'opening' ? (
          <Loading what="the conversation" />
        ) : (
          <Empty title="Nothing is said yet">
            <p>
              Your first message opens a session
              {pool.keeps_sessions
                ? ', which goes on when you reload or leave.'
                : '. It ends with this page, unless the agent itself keeps it.'}
            </p>
          </Empty>
        )}
      </div>
    )
  return (
    <>
      {hasForgotten && session !== undefined && pool.keeps_sessions && (
        <p class="quiet">
          The beginning is not shown here any more:{' '}
          <a href={hrefOf(`${pathOf('sessions', session)}?pool=${encodeURIComponent(pool.id)}`)}>all of it</a>.
        </p>
      )}
      <Transcript entries={entries} />
    </>
  )
}

function Trouble({ view: { problem, phase }, retry }: { readonly view: View; readonly retry: () => void }) {
  if (problem === undefined) return null
  return (
    <div class="chat-trouble" role="alert">
      <p class="problem">{shown(problem)}</p>
      {phase === 'refused' && (
        <button type="button" onClick={retry}>
          Retry
        </button>
      )}
    </div>
  )
}

interface WritingProps {
  readonly conversation: Conversation
  readonly view: View
  readonly maxMessageBytes: number
}

function Writing({ conversation, view, maxMessageBytes }: WritingProps) {
  const { phase, turn, takesImages, choices } = view
  const [pictures, setPictures] = useState<readonly Picture[]>([])
  const [problem, setProblem] = useState<string>()
  const add = (files: readonly File[]): void => {
    if (files.length === 0) return
    if (takesImages === false) return setProblem('This agent takes no images.')
    setProblem(undefined)
    addPictures(pictures, files, maxMessageBytes).then(setPictures, (error) => setProblem(error.message))
  }
  const send = async (text: string): Promise<boolean> => {
    const isSent = await conversation.send(text, pictures)
    if (isSent) setPictures([])
    return isSent
  }
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: what is dropped can be chosen by the button too
    <div
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault()
        add(filesIn(event.dataTransfer))
      }}
    >
      <MessageBox
        isRunning={turn === 'running'}
        isClosed={turn !== 'idle' || phase === 'opening' || phase === 'refused' || phase === 'cut'}
        mayBeEmpty={pictures.length > 0}
        commands={choices.commands}
        send={send}
        stop={() => conversation.stop()}
        pasted={(event) => {
          const files = filesIn(event.clipboardData)
          if (files.length > 0) event.preventDefault()
          add(files)
        }}
      >
        <Pictures pictures={pictures} remove={(at) => setPictures(pictures.filter((_, index) => index !== at))} />
        {takesImages !== false && <AddPicture add={add} />}
        {problem !== undefined && (
          <p class="problem" role="alert">
            {shown(problem)}
          </p>
        )}
      </MessageBox>
    </div>
  )
}

function AddPicture({ add }: { readonly add: (files: readonly File[]) => void }) {
  return (
    <label class="file-button">
      Image
      <input
        type="file"
        aria-label="Add images"
        accept={PICTURE_TYPES.join(',')}
        multiple
        onChange={({ currentTarget }) => {
          add([...(currentTarget.files ?? [])])
          currentTarget.value = ''
        }}
      />
    </label>
  )
}

interface PicturesProps {
  readonly pictures: readonly Picture[]
  readonly remove: (at: number) => void
}

function Pictures({ pictures, remove }: PicturesProps) {
  if (pictures.length === 0) return null
  return (
    <ul class="pictures" aria-label="Images of this message">
      {pictures.map(({ mimeType, data }, index) => (
        <li key={index}>
          <img src={`data:${mimeType};base64,${data}`} alt={`${index + 1}, not sent yet`} />
          <button type="button" class="small" aria-label={`Remove image ${index + 1}`} onClick={() => remove(index)}>
            ×
          </button>
        </li>
      ))}
    </ul>
  )
}
