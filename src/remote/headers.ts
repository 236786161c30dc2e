/**
 * The headers that every request to an upstream over HTTP has: those of the configuration, the token, and our place in the
 * way (contract 11.1, 11.6).
 */
import { VIA_HEADER, writeVia } from '../wire/via.ts'
import { type Upstream, UpstreamFailure, type Via } from './upstream.ts'

/** What HTTP lets a value be; a variable of the environment may hold anything. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

export function ownHeaders({ headers, token }: Upstream): Record<string, string> {
  const own = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
  if (token !== undefined) own['authorization'] = `Bearer ${token}`
  for (const [name, value] of Object.entries(own)) {
    if (!VALUE.test(value))
      throw new UpstreamFailure(`the value of the header ${name} cannot be sent`, { isRefusal: true })
  }
  return own
}

export function viaHeader({ busId }: Upstream, via: Via = []): Record<string, string> {
  return busId === undefined ? {} : { [VIA_HEADER]: writeVia([...via, busId]) }
}
