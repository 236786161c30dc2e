/**
 * An issuer of signed tokens on this machine: a real HTTP server with metadata and keys, which can be told to misbehave.
 *
 * What it publishes and what it signs with are apart: keys can be rotated, forged and forgotten.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, type JWTHeaderParameters, SignJWT } from 'jose'

export const RFC_8414 = '/.well-known/oauth-authorization-server'
export const OPENID = '/.well-known/openid-configuration'
export const KEYS = '/keys'

export interface SigningKey {
  readonly alg: string
  readonly kid: string
  readonly privateKey: CryptoKey
  readonly publicJwk: JWK
}

/** Answers a request in the issuer's place; what it leaves alone the issuer answers. */
type Misbehaviour = (request: IncomingMessage, response: ServerResponse) => boolean

export class Issuer {
  readonly url: string
  /** Paths that were asked for, in order. */
  readonly asked: string[] = []
  published: unknown = { keys: [] }
  metadata: Record<string, unknown>
  misbehave: Misbehaviour = () => false
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  static async start(): Promise<Issuer> {
    const server = createServer()
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new Issuer(server)
  }

  private constructor(server: Server) {
    this.#server = server
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    this.metadata = { issuer: this.url, jwks_uri: this.keysUrl }
    server.on('connection', (socket) => {
      this.#sockets.add(socket)
      socket.on('close', () => this.#sockets.delete(socket))
    })
    server.on('request', (request, response) => {
      this.asked.push(request.url ?? '')
      if (this.misbehave(request, response)) return
      const documents: Record<string, unknown> = { [RFC_8414]: this.metadata, [KEYS]: this.published }
      const document = documents[request.url ?? '']
      response.statusCode = document === undefined ? 404 : 200
      response.end(JSON.stringify(document ?? {}))
    })
  }

  get keysUrl(): string {
    return `${this.url}${KEYS}`
  }

  countOf(path: string): number {
    return this.asked.filter((asked) => asked === path).length
  }

  /** Resolves when a path has been asked for so many times. */
  async askedFor(path: string, count: number): Promise<void> {
    while (this.countOf(path) < count) await once(this.#server, 'request')
  }

  publish(...keys: readonly SigningKey[]): void {
    this.published = { keys: keys.map(({ publicJwk }) => publicJwk) }
  }

  /** Claims that are good unless the caller says otherwise; `undefined` leaves one out. */
  sign(
    key: SigningKey,
    claims: Readonly<Record<string, unknown>> = {},
    header: Record<string, unknown> = {},
  ): Promise<string> {
    const exp = Math.floor(Date.now() / 1_000) + 600
    const all = { iss: this.url, aud: AUDIENCE, sub: 'ann', scope: 'bus:read', exp, ...claims }
    const protectedHeader = { alg: key.alg, kid: key.kid, ...header } as JWTHeaderParameters
    return new SignJWT(JSON.parse(JSON.stringify(all))).setProtectedHeader(protectedHeader).sign(key.privateKey)
  }

  /** Gone, with every connection. */
  async close(): Promise<void> {
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
    await once(this.#server, 'close')
  }
}

export const AUDIENCE = 'https://bus.example.com'

let lastKid = 0

export async function makeKey(alg: string, kid = `key-${++lastKid}`): Promise<SigningKey> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true })
  return { alg, kid, privateKey, publicJwk: { ...(await exportJWK(publicKey)), kid, use: 'sig', alg } }
}
