/** The frame of every view: who one is, where one can go, whether the bus answers (contract 15.5, 15.6, 15.15). */
import { computed, effect, signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { ask, isOutdated, learnMe, me } from './api.ts'
import { isLive } from './feed.ts'
import { followSessions, waitingCount } from './live-sessions.ts'
import { Login } from './pages/login.tsx'
import { PAGES, pageAt } from './pages.ts'
import { KeyHelp } from './parts/key-help.tsx'
import { Failed, Loading } from './parts/state.tsx'
import { follow, go, hrefOf, parts } from './router.ts'
import { brief, shown } from './text.ts'

const failure = signal<unknown>(undefined)
const isMenuOpen = signal(false)
/** What wants to be looked at, by the name of a page. */
const badges = computed<Readonly<Record<string, number>>>(() => ({ Sessions: waitingCount.value }))

export function start(): void {
  failure.value = undefined
  learnMe().catch((error) => {
    failure.value = error
  })
}

effect(() => {
  const waiting = waitingCount.value
  // While it is not known who one is, the address says what will be seen.
  const title = me.value === null ? 'Log in' : (pageAt(parts.value)?.title ?? 'Not found')
  const what = me.value ? brief(parts.value.slice(1).join(' '), 60) : ''
  document.title = `${waiting > 0 ? `(${waiting}) ` : ''}${title}${what && ` ${what}`} · stdio Bus`
})

export function App() {
  useEffect(() => {
    start()
    document.addEventListener('click', follow)
    return () => document.removeEventListener('click', follow)
  }, [])
  if (failure.value !== undefined)
    return (
      <main class="alone">
        <Failed error={failure.value} retry={start} />
      </main>
    )
  if (me.value === undefined)
    return (
      <main class="alone">
        <Loading what="the console" />
      </main>
    )
  if (me.value === null || parts.value[0] === 'login') return <Login />
  return <Frame />
}

const ASK_MS = 1_500

/** A bus that does not answer the feed may be another one, which knows of no login: that is asked for until one of them answers. */
function useLoginCheck(): void {
  const isLost = isLive.value === false
  useEffect(() => {
    if (!isLost) return
    const timer = setInterval(() => learnMe().catch(() => {}), ASK_MS)
    return () => clearInterval(timer)
  }, [isLost])
}

function Frame() {
  const { name, role } = me.value!
  useEffect(followSessions, [])
  useLoginCheck()
  const visible = PAGES.filter(({ roles }) => roles.includes(role))
  // Who may not see the first page begins with its own first.
  const page = parts.value.length === 0 ? visible[0] : pageAt(parts.value)
  return (
    <>
      <a class="skip" href="#content">
        Skip to the content
      </a>
      <header class="bar">
        <a class="brand" href={hrefOf('')}>
          <img src="/console/assets/icon.svg" alt="" width="24" height="24" />
          <span>stdio Bus</span>
        </a>
        <button
          type="button"
          class="menu-button"
          aria-expanded={isMenuOpen.value}
          aria-controls="menu"
          onClick={() => {
            isMenuOpen.value = !isMenuOpen.value
          }}
        >
          Menu
        </button>
        <nav id="menu" class={isMenuOpen.value ? 'open' : ''} aria-label="Pages">
          {visible.map(({ title, path }) => (
            <a
              key={title}
              href={hrefOf(path)}
              aria-current={page?.title === title ? 'page' : undefined}
              onClick={() => {
                isMenuOpen.value = false
              }}
            >
              {title}
              {(badges.value[title] ?? 0) > 0 && <span class="badge">{badges.value[title]}</span>}
            </a>
          ))}
        </nav>
        <div class="who">
          <Liveness />
          <span class="name">
            {shown(name)} <span class="quiet">({role})</span>
          </span>
          <button type="button" onClick={logOut}>
            Log out
          </button>
        </div>
      </header>
      {isLive.value === false && (
        <p class="banner lost" role="alert">
          The bus does not answer. What you see is from before; it will go on by itself.
        </p>
      )}
      {isOutdated.value && (
        <p class="banner" role="status">
          The bus has been upgraded.{' '}
          <button type="button" onClick={() => location.reload()}>
            Reload the page
          </button>
        </p>
      )}
      <main id="content" class={isLive.value === false ? 'stale' : ''} tabIndex={-1}>
        {page === undefined || !page.roles.includes(role) ? <NotFound isAllowed={page === undefined} /> : <page.View />}
      </main>
      <KeyHelp />
    </>
  )
}

function Liveness() {
  const state = isLive.value === undefined ? 'connecting' : isLive.value ? 'live' : 'lost'
  return <span class={`liveness ${state}`}>{state}</span>
}

function NotFound({ isAllowed }: { readonly isAllowed: boolean }) {
  return (
    <>
      <h1>{isAllowed ? 'Not found' : 'Not for your role'}</h1>
      <p>
        {isAllowed ? 'There is no view at this address.' : 'Your role may not see this.'}{' '}
        <a href={hrefOf('')}>Back to the start</a>
      </p>
    </>
  )
}

async function logOut(): Promise<void> {
  await ask('logout', { body: {} }).catch(() => {})
  me.value = null
  go('login')
}
