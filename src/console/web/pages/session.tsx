/** One session: what is said in it, what waits, and what one may do about it (contract 15.8). */
import { useEffect, useMemo, useState } from 'preact/hooks'
import { ApiFailure, ask, may } from '../api.ts'
import { liveSessions, type Session } from '../live-sessions.ts'
import { Confirm } from '../parts/confirm.tsx'
import { useLoaded } from '../parts/loaded.tsx'
import { Empty, Failed, Loading } from '../parts/state.tsx'
import { hrefOf } from '../router.ts'
import { brief, clock, count, shown } from '../text.ts'
import { entriesOf, type Question } from '../transcript/entries.ts'
import { SessionLines } from '../transcript/lines.ts'
import { MessageBox } from '../transcript/message-box.tsx'
import { QuestionView } from '../transcript/question.tsx'
import { Transcript } from '../transcript/transcript.tsx'

interface SessionProps {
  readonly id: string
  readonly pool: string | undefined
}

export function SessionView({ id, pool }: SessionProps) {
  const path = `sessions/${encodeURIComponent(id)}`
  const search = pool === undefined ? '' : `?pool=${encodeURIComponent(pool)}`
  const { value, error, again } = useLoaded<Session & { driving: boolean }>(path + search)
  const live = liveSessions.value?.items.find(
    (row) =>
      row.session === id && row.pool === (value?.pool ?? pool) && row.principal === (value?.principal ?? row.principal),
  )
  // What has just begun or ended is known better by asking.
  const isLiveNow = live !== undefined
  useEffect(again, [isLiveNow, again])
  if (value === undefined)
    return (
      <div class="session-pane">
        {error === undefined ? <Loading what="the session" /> : <NotThere error={error} again={again} />}
      </div>
    )
  return <Pane row={live ?? value} isDriving={value.driving} changed={again} />
}

function NotThere({ error, again }: { readonly error: unknown; readonly again: () => void }) {
  if (!(error instanceof ApiFailure && error.status === 404)) return <Failed error={error} retry={again} />
  return (
    <Empty title="There is no such session">
      <p>It has been deleted, is somebody else's, or was never here.</p>
      <p>
        <a href={hrefOf('sessions')}>All sessions</a>
      </p>
    </Empty>
  )
}

interface PaneProps {
  readonly row: Session
  readonly isDriving: boolean
  /** Something was done to the session. */
  readonly changed: () => void
}

function Pane({ row, isDriving, changed }: PaneProps) {
  const { session } = row
  const path = `sessions/${encodeURIComponent(session)}`
  const store = useMemo(() => new SessionLines(session), [session])
  useEffect(() => () => store.close(), [store])
  const lines = store.lines.value
  const entries = useMemo(() => entriesOf(lines), [lines])
  const isOn = row.state === 'attached' || row.state === 'detached'
  const mayAct = may('admin', 'user') && isOn
  const open = isOn ? openOf(entries, row) : []
  const act = (what: string, body: object = {}): Promise<unknown> =>
    ask(`${path}/${what}?pool=${encodeURIComponent(row.pool)}`, { body }).finally(changed)
  const failure = store.error.value
  return (
    <section class="session-pane" aria-label={`Session ${brief(row.title || session)}`}>
      <Head row={row} isDriving={isDriving} mayAct={mayAct} act={act} />
      {!store.isLoaded.value && failure === undefined && <Loading what="what was said" />}
      {failure !== undefined && <Failed error={failure} retry={() => void store.load()} />}
      {store.isLoaded.value && (
        <Transcript
          entries={entries.filter(
            ({ kind, ...entry }) =>
              kind !== 'question' || !open.some(({ number }) => `question-${number}` === entry.key),
          )}
          earlier={store.hasEarlier ? () => void store.earlier() : undefined}
        />
      )}
      <div class="waiting">
        {open.map((question) => (
          <QuestionView
            key={question.number}
            question={question}
            answer={mayAct ? (body) => act(`answers/${question.number}`, body) : undefined}
          />
        ))}
      </div>
      {mayAct && (
        <MessageBox
          isRunning={row.turn !== 'idle'}
          send={(text) => act('prompt', { text })}
          stop={() => act('cancel')}
        />
      )}
      {!isOn && (
        <p class="quiet">
          {row.state === 'lost'
            ? 'The agent has lost this session and cannot go on with it. What was said is kept.'
            : 'This session has ended. What was said is kept.'}
        </p>
      )}
    </section>
  )
}

/** What waits, with what was asked: the transcript has it, unless it is from before what is shown. */
function openOf(entries: ReturnType<typeof entriesOf>, { waiting }: Session): Question[] {
  return waiting.flatMap(({ question: number }) => {
    const entry = entries.find(({ kind, key }) => kind === 'question' && key === `question-${number}`)
    return entry?.kind === 'question' && entry.question.answeredBy === undefined ? [entry.question] : []
  })
}

type Act = (what: string, body?: object) => Promise<unknown>

interface HeadProps {
  readonly row: Session
  readonly isDriving: boolean
  readonly mayAct: boolean
  readonly act: Act
}

function Head({ row, isDriving, mayAct, act }: HeadProps) {
  const [isEnding, setEnding] = useState(false)
  const [problem, setProblem] = useState<string>()
  const { session, pool, principal, title, state, ends_at, first_seq, seq, clients, cwd } = row
  const tell = (error: unknown): void => setProblem(error instanceof Error ? error.message : String(error))
  return (
    <div class="session-head">
      <div class="row">
        <a class="back" href={hrefOf('sessions')}>
          ← All sessions
        </a>
        <h2>{brief(title || session, 200)}</h2>
        {mayAct && (
          <div class="row actions">
            <button type="button" aria-pressed={!isDriving} onClick={() => act('detach').catch(tell)}>
              Observe
            </button>
            <button type="button" aria-pressed={isDriving} onClick={() => act('attach').catch(tell)}>
              Attach
            </button>
            <button type="button" onClick={() => setEnding(true)}>
              End
            </button>
          </div>
        )}
      </div>
      <p class="quiet">
        {brief(pool)} · <code>{brief(session)}</code> · {brief(principal)} · {state}
        {ends_at !== null && `, ends ${clock(ends_at)}`} · lines {count(first_seq)} to {count(seq)}
        {cwd !== '' && ` · ${brief(cwd, 200)}`}
        {clients.length > 0 &&
          ` · ${clients.map(({ name, driver }) => brief(name, 40) + (driver ? ' (drives)' : '')).join(', ')}`}
      </p>
      {problem !== undefined && (
        <p class="problem" role="alert">
          {shown(problem)}
        </p>
      )}
      {isEnding && (
        <Confirm
          title="End this session?"
          verb="End"
          act={() =>
            ask(`sessions/${encodeURIComponent(session)}?pool=${encodeURIComponent(pool)}`, { method: 'DELETE' })
          }
          close={() => setEnding(false)}
        >
          <p>The agent is told to stop and forgets it; what was said is kept.</p>
        </Confirm>
      )}
    </div>
  )
}
