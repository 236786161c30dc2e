/** `/healthz` and `/readyz`: for whoever watches the bus; any Host, no credentials, and nothing told but yes or no (contract 10.18). */
import type { WebPort } from './port.ts'
import type { WebRequest } from './web-request.ts'

/** True: it was asked for, and is answered. */
export function serveHealth(web: WebRequest, port: WebPort): boolean {
  const [name, pool, ...rest] = web.segments ?? []
  if ((name !== 'healthz' && name !== 'readyz') || rest.length > 0 || (name === 'healthz' && pool !== undefined))
    return false
  if (web.method !== 'GET' && web.method !== 'HEAD')
    web.refuse({ reason: 'wrong_method', headers: { allow: 'GET, HEAD' } })
  else if (name === 'healthz') tell(web, true)
  else tell(web, !port.isShuttingDown && port.isUsable(pool))
  return true
}

function tell(web: WebRequest, isWell: boolean): void {
  const body = web.method === 'HEAD' ? undefined : isWell ? 'ok\n' : 'not ready\n'
  web.answer(isWell ? 200 : 503, body, { 'content-type': 'text/plain; charset=utf-8' })
}
