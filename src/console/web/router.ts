/** Where one is: every view has an address with its filters, and Back works (contract 15.6). */
import { computed, signal } from '@preact/signals'

const BASE = '/console/'

const address = signal(location.pathname + location.search)

addEventListener('popstate', () => {
  address.value = location.pathname + location.search
})

/** The parts of the path below the console, decoded. */
export const parts = computed<readonly string[]>(() => {
  const path = new URL(address.value, location.origin).pathname
  return path.slice(BASE.length).split('/').filter(Boolean).map(decode)
})

export const query = computed(() => new URL(address.value, location.origin).searchParams)

/** Goes to a path below the console. */
export function go(path: string, options: { replace?: boolean } = {}): void {
  const target = BASE + path
  if (target === address.value) return
  if (options.replace) history.replaceState(null, '', target)
  else history.pushState(null, '', target)
  address.value = target
  if (!options.replace) scrollTo(0, 0)
}

/** Changes filters of the present view; an empty one is left out. */
export function setQuery(changes: Readonly<Record<string, string | null>>): void {
  const next = new URLSearchParams(query.value)
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === '') next.delete(name)
    else next.set(name, value)
  }
  const path = new URL(address.value, location.origin).pathname.slice(BASE.length)
  go(next.size === 0 ? path : `${path}?${next}`, { replace: true })
}

export function hrefOf(path: string): string {
  return BASE + path
}

/** The path of parts, each as it may stand in an address. */
export function pathOf(...names: readonly string[]): string {
  return names.map(encodeURIComponent).join('/')
}

/** A click that a browser would follow inside this page is followed here. */
export function follow(event: MouseEvent): void {
  const link = (event.target as Element | null)?.closest?.('a')
  if (!link || event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return
  if (link.target || link.hasAttribute('download') || link.origin !== location.origin) return
  if (!link.pathname.startsWith(BASE)) return
  event.preventDefault()
  go(link.pathname.slice(BASE.length) + link.search)
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
