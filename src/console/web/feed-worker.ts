/**
 * One stream of events for all tabs of a browser: six connections to a host is all a browser has (contract 15.20).
 *
 * A tab says what it follows; the stream is opened anew when the sum of that changes. What a tab is told is what the bus said, and
 * whether the bus can be reached: a bus that stands still, or a way to it that is gone, ends no stream by itself, so it is asked too.
 */
interface Tab {
  readonly port: MessagePort
  topics: readonly string[]
  seenMs: number
}

const RETRY_MS = 1_000
/** Both together are less than the time in which a lost bus is to be said. */
const ASK_MS = 1_000
const ANSWER_MS = 1_500
/** Tabs say that they live; one that has not for so long is gone. */
const SILENT_MS = 15_000

/** Topics of which the last event is all there is to know. */
const PICTURES = new Set(['overview', 'problems', 'sessions'])

const tabs = new Set<Tab>()
const latest = new Map<string, string>()
/** Where the stream was, for one that is opened anew. */
let position = ''
let source: EventSource | undefined
let followed = ''
let isUp: boolean | undefined

function join(port: MessagePort): void {
  const tab: Tab = { port, topics: [], seenMs: Date.now() }
  tabs.add(tab)
  port.onmessage = ({ data }: MessageEvent<{ topics?: readonly string[]; leave?: true }>) => {
    tab.seenMs = Date.now()
    if (data.leave) tabs.delete(tab)
    if (data.topics !== undefined) follow(tab, data.topics)
    connect(data.topics !== undefined)
  }
  if (isUp !== undefined) port.postMessage({ isUp })
}

/** What others follow already is told at once as it is. */
function follow(tab: Tab, topics: readonly string[]): void {
  for (const topic of topics) {
    const data = tab.topics.includes(topic) ? undefined : latest.get(topic)
    if (data !== undefined) tab.port.postMessage({ topic, data })
  }
  tab.topics = topics
}

function connect(mayRefresh: boolean): void {
  const topics = [...new Set([...tabs].flatMap((tab) => tab.topics))].sort()
  const wanted = topics.join(',')
  if (wanted === followed && (source !== undefined || wanted === '')) return
  if (!mayRefresh && wanted === followed) return
  source?.close()
  source = undefined
  followed = wanted
  if (wanted === '') return
  for (const topic of latest.keys()) if (!topics.includes(topic)) latest.delete(topic)
  const opened = new EventSource(`/api/events?${new URLSearchParams({ topics: wanted, after: position })}`)
  source = opened
  opened.onopen = () => {
    say(true)
    tellMissed(topics)
  }
  opened.onerror = () => {
    say(false)
    if (opened.readyState !== EventSource.CLOSED || source !== opened) return
    source = undefined
    setTimeout(() => connect(true), RETRY_MS)
  }
  for (const name of topics) opened.addEventListener(name, (event) => tell(name, event as MessageEvent<string>))
  opened.addEventListener('gap', ({ data }) => tellMissed((JSON.parse(data) as { topics: string[] }).topics))
}

/** Any answer is a sign of life; this one is for everybody, and no use of a login. */
async function askForLife(): Promise<void> {
  const asked = source
  const isAlive = await fetch('/healthz', { signal: AbortSignal.timeout(ANSWER_MS), cache: 'no-store' }).then(
    () => true,
    () => false,
  )
  if (asked === undefined || asked !== source) return
  if (!isAlive) return say(false)
  // It was lost and the stream does not know: what it would have said has gone by.
  if (isUp === false && asked.readyState === EventSource.OPEN) {
    asked.close()
    source = undefined
    connect(true)
  }
}

async function watch(): Promise<void> {
  await askForLife()
  setTimeout(watch, ASK_MS)
}

function tell(topic: string, event: MessageEvent<string>): void {
  say(true)
  position = event.lastEventId || position
  if (PICTURES.has(topic)) latest.set(topic, event.data)
  for (const { port, topics } of tabs) if (topics.includes(topic)) port.postMessage({ topic, data: event.data })
}

function tellMissed(missed: readonly string[]): void {
  for (const { port } of tabs) port.postMessage({ missed })
}

function say(isReached: boolean): void {
  if (isReached === isUp) return
  isUp = isReached
  for (const { port } of tabs) port.postMessage({ isUp })
}

setInterval(() => {
  const before = tabs.size
  for (const tab of tabs) if (Date.now() - tab.seenMs > SILENT_MS) tabs.delete(tab)
  if (tabs.size !== before) connect(true)
}, SILENT_MS / 3)

void watch()

if ('onconnect' in self)
  (self as unknown as { onconnect: (event: MessageEvent) => void }).onconnect = ({ ports }) => join(ports[0]!)
else join(self as unknown as MessagePort)
