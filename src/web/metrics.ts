/** `/metrics`: the state of the bus as Prometheus text, for observers and admins, and for anybody where nobody is told apart (contract 9.4). */
import type { Rights } from '../kernel/rights.ts'
import type { WebPort } from './port.ts'
import type { Adapter } from './service.ts'
import type { WebRequest } from './web-request.ts'

export class MetricsAdapter implements Adapter {
  readonly methods = ['GET', 'HEAD']
  readonly #port: WebPort

  constructor(port: WebPort) {
    this.#port = port
  }

  serve(web: WebRequest): void {
    if (web.path !== '/metrics') return web.refuse({ reason: 'not_found' })
    const mayDo = ({ role }: Rights): boolean => role !== 'user'
    if (this.#port.hasAccess && !mayDo(web.admitted.identity.rights)) {
      this.#port.denied(web.admitted, web.connection.peer, { method: 'metrics' })
      return web.refuse({ reason: 'not_allowed', mayDo })
    }
    web.answer(200, this.#port.metrics(), { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' })
  }
}
