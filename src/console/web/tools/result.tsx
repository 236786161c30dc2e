/** How a call ended and what came of it: a failure looks unlike a success, and what a server says is text (contract 15.10, 15.17). */
import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { exactly } from '../exact.ts'
import { Preformatted } from '../parts/preformatted.tsx'
import { hrefOf, pathOf } from '../router.ts'
import { check } from '../schema/check.ts'
import { isObject, own, type Properties } from '../schema/value.ts'
import { RpcFailure } from '../socket.ts'
import { brief, count, duration, shown, wordsOf } from '../text.ts'
import { BlockView } from '../transcript/blocks.tsx'
import type { CallState } from './call.ts'
import { isDrawable } from './form-state.ts'
import type { Item } from './items.ts'
import type { Answer } from './mcp-client.ts'
import { pretty } from './pretty.ts'
import { wellFormed } from './uri-template.ts'

const MAX_SHOWN_CHARS = 200_000
const MAX_BLOCKS = 500

export interface ResultProps {
  readonly call: CallState
  readonly item: Item
  readonly pool: string
  readonly logs: readonly Properties[]
}

export function Result(props: ResultProps) {
  const { call, logs } = props
  const isBad = call.phase === 'failed' || (call.phase === 'done' && isFailure(call.answer))
  return (
    <section class={`card result ${call.phase} ${isBad ? 'bad-result' : ''}`} aria-label="Result">
      <h3>Result</h3>
      <p role="status" class="result-state">
        <Outcome call={call} />
      </p>
      {call.phase === 'running' && <Running call={call} />}
      {call.phase === 'failed' && <Failure error={call.error} />}
      {call.phase === 'done' && <Contents {...props} answer={call.answer} />}
      {call.phase !== 'idle' && logs.length > 0 && <Logs logs={logs} />}
    </section>
  )
}

function isFailure({ result }: Answer): boolean {
  return isObject(result) && result['isError'] === true
}

/** Said in words, and by more than colour. */
function Outcome({ call }: { readonly call: CallState }) {
  if (call.phase === 'idle') return <span class="quiet">Nothing has been called yet.</span>
  if (call.phase === 'running') return <span>Running …</span>
  if (call.phase === 'cancelled') return <span class="warn">■ Cancelled after {duration(call.tookMs)}</span>
  if (call.phase === 'failed') return <span class="bad">✗ Error after {duration(call.tookMs)}</span>
  if (isFailure(call.answer)) return <span class="bad">✗ Failed: the tool says so, after {duration(call.tookMs)}</span>
  return <span class="good">✓ Success in {duration(call.tookMs)}</span>
}

function Running({ call: { sinceMs, progress } }: { readonly call: Extract<CallState, { phase: 'running' }> }) {
  const [nowMs, setNowMs] = useState(performance.now())
  useEffect(() => {
    const timer = setInterval(() => setNowMs(performance.now()), 1_000)
    return () => clearInterval(timer)
  }, [])
  const { total, progress: done = 0, message } = progress ?? { total: undefined, message: undefined }
  return (
    <div class="call-progress">
      <progress aria-label="Progress" {...(total !== undefined && { max: total, value: Math.min(done, total) })} />
      <span class="figure">
        {progress !== undefined && `${count(done)}${total === undefined ? '' : ` of ${count(total)}`} · `}
        {Math.max(0, Math.round((nowMs - sinceMs) / 1_000))} s
      </span>
      {message !== undefined && <span class="call-message">{brief(message, 300)}</span>}
    </div>
  )
}

function Failure({ error }: { readonly error: unknown }) {
  const isRpc = error instanceof RpcFailure
  return (
    <>
      <p class="prewrapped">
        {isRpc && <code>{String(error.code)}</code>}{' '}
        {shown(error instanceof Error ? error.message : error).slice(0, 4_000)}
      </p>
      {isRpc && error.data !== undefined && <Json value={error.data} />}
    </>
  )
}

type ContentsProps = ResultProps & { readonly answer: Answer }

function Contents({ answer: { result, exact }, item, pool }: ContentsProps) {
  if (!isObject(result)) return <Json value={exact} />
  const structured = own(exact, 'structuredContent')
  const blocks = blocksOf(item, result)
  const twin = structured === undefined ? undefined : pretty(structured)
  return (
    <>
      {blocks.slice(0, MAX_BLOCKS).map((block, index) => (
        <Part key={index} block={block} pool={pool} twin={twin} />
      ))}
      {blocks.length > MAX_BLOCKS && <p class="quiet">{count(blocks.length - MAX_BLOCKS)} more are not shown.</p>}
      {blocks.length === 0 && structured === undefined && <p class="quiet">It has no content.</p>}
      {structured !== undefined && (
        <>
          <h4>Structured content</h4>
          <Unfit item={item} value={structured} />
          <Json value={structured} />
        </>
      )}
      <Folded title="The whole answer as JSON">{() => <Json value={exact} />}</Folded>
    </>
  )
}

function Unfit({ item, value }: { readonly item: Item; readonly value: unknown }) {
  const schema = item.told['outputSchema']
  const [problem] = schema === undefined || !isDrawable(schema) ? [] : check(value, schema, schema)
  if (problem === undefined) return null
  return (
    <p class="warn">
      ! It does not fit the schema that the tool promises: {brief(problem.path.join('.'))} {brief(problem.message, 300)}
    </p>
  )
}

interface Block {
  readonly type: string
  readonly [key: string]: unknown
}

/** What came, whatever was called, as blocks. */
function blocksOf({ kind }: Item, result: Properties): Block[] {
  if (kind === 'tool') return objectsIn(result['content']).map(asBlock)
  if (kind === 'prompt')
    return objectsIn(result['messages']).flatMap(({ role, content }) => [
      { type: 'role', text: role },
      ...objectsIn(Array.isArray(content) ? content : [content]).map(asBlock),
    ])
  return objectsIn(result['contents']).map((resource) => ({ type: 'resource', resource }))
}

function objectsIn(value: unknown): Properties[] {
  return (Array.isArray(value) ? value : []).filter(isObject)
}

function asBlock(value: Properties): Block {
  return { ...value, type: wordsOf(value['type']) }
}

interface PartProps {
  readonly block: Block
  readonly pool: string
  /** Text that only repeats what stands elsewhere. */
  readonly twin: string | undefined
}

function Part({ block, pool, twin }: PartProps) {
  if (block.type === 'role') return <p class="result-role">{brief(block['text'])}</p>
  if (block.type === 'text') return <Text text={wordsOf(block['text'])} twin={twin} />
  if (block.type === 'resource' && isObject(block['resource']))
    return <ResourcePart resource={block['resource']} pool={pool} />
  if (block.type === 'resource_link')
    return (
      <div class="result-link">
        <BlockView block={block as never} />
        <ReadLink pool={pool} uri={block['uri']} />
      </div>
    )
  return <BlockView block={block as never} />
}

function Text({ text, twin }: { readonly text: string; readonly twin: string | undefined }) {
  const value = /^\s*[[{]/.test(text) && text.length <= MAX_SHOWN_CHARS ? parsed(text) : undefined
  if (value === undefined) return <Long text={text} />
  if (twin !== undefined && pretty(value) === twin)
    return <p class="quiet">Its text says the same as its structured content.</p>
  return <Json value={value} />
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text, exactly as never)
  } catch {
    return undefined
  }
}

const IMAGE = /^image\//
const SOUND = /^audio\//

function ResourcePart({ resource, pool }: { readonly resource: Properties; readonly pool: string }) {
  const { uri, mimeType, text, blob } = resource
  const kind = IMAGE.test(wordsOf(mimeType)) ? 'image' : SOUND.test(wordsOf(mimeType)) ? 'audio' : undefined
  return (
    <figure class="result-resource">
      <figcaption>
        <code>{brief(uri, 300)}</code> <span class="quiet">{brief(mimeType ?? '')}</span>{' '}
        <ReadLink pool={pool} uri={uri} />
      </figcaption>
      {typeof text === 'string' && <Text text={text} twin={undefined} />}
      {typeof blob === 'string' &&
        (kind === undefined ? (
          <p class="quiet">{count(Math.floor((blob.length * 3) / 4))} bytes that are no text</p>
        ) : (
          <BlockView block={{ type: kind, mimeType, data: blob } as never} />
        ))}
    </figure>
  )
}

/** To the same resource on this page. */
function ReadLink({ pool, uri }: { readonly pool: string; readonly uri: unknown }) {
  if (typeof uri !== 'string' || uri === '' || uri.length > 2_000) return null
  return <a href={hrefOf(`${pathOf('tools', pool, wellFormed(uri))}?kind=resource`)}>Read it here</a>
}

function Long({ text }: { readonly text: string }) {
  const isCut = text.length > MAX_SHOWN_CHARS
  return (
    <>
      <Preformatted kind="result-text">{shown(text.slice(0, MAX_SHOWN_CHARS))}</Preformatted>
      {isCut && <p class="quiet">… cut here: {count(text.length - MAX_SHOWN_CHARS)} characters more</p>}
    </>
  )
}

export function Json({ value }: { readonly value: unknown }) {
  return <Long text={pretty(value)} />
}

/** Made when it is wanted. */
export function Folded({ title, children }: { readonly title: string; readonly children: () => ComponentChildren }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>{title}</summary>
      {isOpen && children()}
    </details>
  )
}

function Logs({ logs }: { readonly logs: readonly Properties[] }) {
  return (
    <details>
      <summary>Logged by the server ({count(logs.length)})</summary>
      <ul class="plain">
        {logs.map(({ level, data }, index) => (
          <li key={index} class="log-line wrapped">
            <span class="level">{brief(level, 12)}</span>
            <span>{brief(typeof data === 'string' ? data : pretty(data), 500)}</span>
          </li>
        ))}
      </ul>
    </details>
  )
}
