/**
 * Which proxy the environment names for an upstream (contract 11.5): `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`, in either
 * case, the lower one first, as other programs have it. What is on this machine is reached without one, whatever is said.
 */
import { isLoopbackHost } from '../host/address.ts'
import { isSecure, tcpOf } from './address.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/** The URL of the proxy; undefined: none. */
export function proxyFor(url: URL, environment: Environment): URL | undefined {
  const { host, port } = tcpOf(url)
  if (isLoopbackHost(host)) return undefined
  const text = read(environment, isSecure(url) ? 'https_proxy' : 'http_proxy')
  if (text === '' || isExempt(read(environment, 'no_proxy'), host.toLowerCase(), port)) return undefined
  const named = /^[a-z]+:\/\//i.test(text) ? text : `http://${text}`
  return URL.canParse(named) ? new URL(named) : undefined
}

function read(environment: Environment, name: string): string {
  return (environment[name] ?? environment[name.toUpperCase()] ?? '').trim()
}

/** A name means itself and what is below it, with or without a leading dot or star; `*` alone means everybody. */
function isExempt(list: string, host: string, port: number): boolean {
  return list.split(/[\s,]+/).some((entry) => {
    if (entry === '') return false
    if (entry === '*') return true
    const [, name = entry.toLowerCase(), only] = /^(\[[^\]]*\]|[^:]*)(?::(\d+))?$/.exec(entry.toLowerCase()) ?? []
    if (only !== undefined && Number(only) !== port) return false
    const bare = name.replace(/^\*?\./, '').replace(/^\[|\]$/g, '')
    return host === bare || host.endsWith(`.${bare}`)
  })
}
