/** `/ws`: lines over WebSocket, for any protocol (contract 10.14). */
import type { Duplex } from 'node:stream'
import type { WebPort } from './port.ts'
import type { Adapter } from './service.ts'
import type { WebRequest } from './web-request.ts'
import { acceptWebSocket } from './websocket.ts'

export class WebSocketAdapter implements Adapter {
  readonly methods = ['GET']
  readonly takesLogin = true
  readonly #port: WebPort

  constructor(port: WebPort) {
    this.#port = port
  }

  serve(web: WebRequest): void {
    web.refuse({ reason: 'upgrade_required', headers: { upgrade: 'websocket', connection: 'Upgrade' } })
  }

  upgrade(web: WebRequest, socket: Duplex, head: Buffer): void {
    acceptWebSocket(this.#port, { binary: 'refused', headers: {} }, { web, socket, head })
  }
}
