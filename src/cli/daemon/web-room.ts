/**
 * The web doors and all that they ask of the bus: who somebody is, a client of the kernel, and a few facts.
 *
 * It is loaded only by a bus that has such a door. What a request may have is decided by whoever receives people at all doors;
 * what an answer is, by the adapters of `src/web`.
 */
import type { Duplex } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { doorPathOfDocument, type PublicDoor, protectedResource, refusalHead } from '../../access/oauth/metadata.ts'
import { REFUSAL_PAUSE_MS } from '../../access/refusals.ts'
import type { BusConfig, HttpDoor, Listen } from '../../config/bus-config.ts'
import { BusClient } from '../../console/api/bus-client.ts'
import type { ConsolePort, SessionsPort, TraceQuery } from '../../console/api/port.ts'
import { formatMetrics } from '../../console/metrics.ts'
import type { Status } from '../../console/status.ts'
import { type Identity, mayUsePool, type Rights, type Role } from '../../kernel/rights.ts'
import type { ClientId, PoolId, PoolSpec, WorkerId } from '../../kernel/vocabulary.ts'
import type { Accept } from '../../transports/listener.ts'
import type { MessageClient, MessageEntrance, MessageListener } from '../../transports/messages.ts'
import { listenTcp } from '../../transports/tcp.ts'
import { listenTls } from '../../transports/tls.ts'
import { AcpAdapter } from '../../web/acp/endpoint.ts'
import { type HttpDoorOptions, type HttpListener, listenHttp } from '../../web/door.ts'
import { McpEndpoint } from '../../web/mcp/endpoint.ts'
import { Sessions } from '../../web/mcp/sessions.ts'
import { SessionsFile } from '../../web/mcp/sessions-file.ts'
import { StatelessPosts } from '../../web/mcp/stateless.ts'
import { MetricsAdapter } from '../../web/metrics.ts'
import type { Admitted, Judgement, PoolFacts, Shown, WebPort } from '../../web/port.ts'
import { RpcAdapter } from '../../web/rpc.ts'
import { type Adapter, WebService } from '../../web/service.ts'
import { segmentsOf, type WebRequest } from '../../web/web-request.ts'
import { WebSocketAdapter } from '../../web/ws.ts'
import { UserMistake } from '../user-mistake.ts'
import { VERSION } from '../version.ts'
import { ConsoleRoom, SlowCodes } from './console-room.ts'
import { keysOfFlags, revokePrincipal, viewConfiguration, viewPools, viewPrincipals } from './console-settings.ts'
import type { Daemon } from './daemon.ts'
import type { Edges } from './edges.ts'
import { FileLooks } from './file-looks.ts'
import type { Log } from './log.ts'
import type { Reception } from './open-doors.ts'
import { TRACE_FORMATS } from './trace-formats.ts'

export interface WebRoomOptions {
  readonly daemon: Daemon
  readonly log: Log
  readonly edges: Edges
  readonly allowUnauthenticated: boolean
  readonly busId: string
  /** Takes a connection, once there is somebody to serve it. */
  readonly inTime: (socket: Duplex, take: () => void) => void
  /** As they are now: a reload changes them. */
  readonly config: () => BusConfig
  /** Those of the kernel, places at other nodes among them. */
  readonly pools: () => readonly PoolSpec[]
  readonly reception: () => Reception
  readonly status: () => Status
  readonly reload: () => Promise<unknown>
  /** The files of the certificates that the doors show. */
  readonly certificates: () => readonly string[]
  /** The doors that are open, by whichever of the two was asked for them, and the control socket if a flag names it. */
  readonly commandLine: { readonly doors: Listen; readonly control: string | undefined }
  /** Questions to the trace store by somebody; undefined: there is none. */
  readonly traces: (identity: Identity) => TraceQuery | undefined
  readonly followTraces: (changed: () => void) => () => void
}

/** Where a document says how to be admitted, and whether a pool can be named there (contract 9.14). */
const PROTECTED: ReadonlyMap<string, 'pools' | 'alone'> = new Map([
  ['mcp', 'pools'],
  ['acp', 'pools'],
  ['ws', 'pools'],
  ['rpc', 'pools'],
  ['metrics', 'alone'],
])

const NO_CONSOLE: { readonly loggedIn?: (web: WebRequest) => Admitted | undefined } = {}

export class WebRoom implements WebPort {
  readonly #options: WebRoomOptions
  readonly refusedByReason = new Map<string, number>()
  readonly doors: HttpListener[] = []
  readonly #sessions: Sessions[] = []
  readonly #acp = new AcpAdapter(this)
  #streamCount = 0
  readonly #consoleDoors: { readonly address: string; readonly publicUrl: string | undefined }[] = []
  readonly #console: ConsoleRoom
  readonly #slowCodes = new SlowCodes()
  readonly #adapters: Readonly<Record<string, Adapter>> = {
    acp: this.#acp,
    ws: new WebSocketAdapter(this),
    rpc: new RpcAdapter(this),
    metrics: new MetricsAdapter(this),
  }
  isShuttingDown = false

  constructor(options: WebRoomOptions) {
    this.#options = options
    this.#console = new ConsoleRoom(this.#consolePort())
  }

  #consolePort(): ConsolePort {
    const { daemon, log, config, reception, status, reload, certificates } = this.#options
    const principals = () => viewPrincipals(config().access?.file, status(), (name) => reception().sighted(name))
    const looks = new FileLooks({ config, certificates, principals })
    return {
      version: VERSION,
      status,
      history: (pool) => daemon.trafficOf(pool),
      pools: () => config().bus.pools.map(({ id }) => id),
      // Where nobody is told apart no token says who somebody is: the console wants a code.
      judge: async (token, { connection, path }) =>
        this.hasAccess ? this.judge({ token, ...connection, path, publicUrl: undefined }) : undefined,
      refuse: (web) => this.#slowCodes.refuse(web),
      stillHolds: ({ proof }) => reception().stillHolds(proof),
      reload,
      restart: (worker) => daemon.apply({ type: 'worker-restart', worker: worker as WorkerId }),
      logs: () => log.recent.all().map((line, index) => ({ seq: log.recent.firstNumber + index, line })),
      followLogs: (follower) => log.recent.follow((line, number) => follower(number, line)),
      traces: (identity) => this.#options.traces(identity),
      followTraces: (changed) => this.#options.followTraces(changed),
      traceFormats: TRACE_FORMATS,
      sessions: this.#sessionsPort(),
      openClient: (admitted, peer, isQuiet, pool) =>
        new BusClient((listener) => this.open(consoleEntrance(admitted, isQuiet, pool), admitted, peer, listener)),
      poolViews: () => viewPools(config(), daemon.roll().pools),
      isRemote: (pool) => 'url' in (config().launches.get(pool) ?? {}),
      maxMessageBytes: () => this.maxMessageBytes,
      principals,
      fileChange: () => looks.change(),
      expiries: () => looks.expiries(),
      revoke: (name) => revokePrincipal(config().access?.file, name),
      configuration: () => viewConfiguration(config(), keysOfFlags(config(), this.#options.commandLine)),
      audit: (identity, method, outcome) => reception().acted(identity, method, outcome),
    }
  }

  #sessionsPort(): SessionsPort {
    const { sessionViews } = this.#options.daemon
    return {
      page: (viewer, wish) => sessionViews.keptSessions(viewer, wish),
      one: (viewer, session, pool) => sessionViews.keptSession(viewer, session, pool),
      live: (viewer) => sessionViews.liveSessions(viewer),
      openQuestions: () => sessionViews.openQuestions(),
      isShared: (pool) => this.pool(pool)?.sharing === 'shared',
    }
  }

  async openDoor(door: HttpDoor): Promise<void> {
    const { log, edges, allowUnauthenticated } = this.#options
    const { host, port, pool, cert, key, publicUrl, hosts, origins } = door
    const onTrouble = (message: string): void => log.write('warn', message)
    const policy = { onTrouble, allowUnauthenticated }
    const failed = (error: unknown): void => edges.report('a web door', error)
    const { loggedIn, ...realms } = door.hasConsole ? this.#console.adapters({ publicUrl, failed }) : NO_CONSOLE
    const service = new WebService(this, {
      names: { bound: host, publicUrl, hosts, origins },
      pool,
      adapters: { mcp: this.#mcp(door), ...this.#adapters, ...realms },
      failed,
      ...(loggedIn === undefined ? {} : { loggedIn }),
    })
    const { inTime } = this.#options
    const bind: HttpDoorOptions['bind'] = (address, take) => {
      const accept: Accept = (socket, info) => inTime(socket, () => take(socket, info))
      if (cert === undefined || key === undefined) return listenTcp(address, policy, accept)
      const onExchanged = (message: string): void => log.write('info', message)
      return listenTls(address, { ...policy, ...door, cert, key, onExchanged }, accept)
    }
    const refused = (reason: string): void => this.refused(reason)
    const { maxConnections } = door
    const listener = await listenHttp({ host, port }, { maxConnections, bind, onTrouble, refused }, service)
    this.doors.push(listener)
    if (door.hasConsole) this.#consoleDoors.push({ address: listener.address, publicUrl })
  }

  /** A link to the console, good once; undefined: no door has one. */
  consoleLink(role: Role): string | undefined {
    const door = this.#consoleDoors[0]
    if (door === undefined) return undefined
    const { address, publicUrl } = door
    const code = this.#console.makeCode(this.#options.reception().receiveLocal(role))
    return `${publicUrl ?? address}/console/login#code=${code}`
  }

  #mcp({ sessionIdleMs: idleMs, sessionsFile: path }: HttpDoor): Adapter {
    const file = path === undefined ? undefined : this.#openSessions(path)
    const sessions = new Sessions(this, { idleMs, file })
    this.#sessions.push(sessions)
    return new McpEndpoint(this, sessions, new StatelessPosts(this))
  }

  #openSessions(path: string): SessionsFile {
    try {
      return new SessionsFile(path, (message) => this.log('warn', message))
    } catch (cause) {
      throw new UserMistake(`sessions_file cannot be used: ${(cause as Error).message}`)
    }
  }

  /** Nothing new is taken; what is under way is answered, and whoever asks is told (contract 10.17). */
  shutDown(): void {
    this.isShuttingDown = true
  }

  async close(): Promise<void> {
    await Promise.all(this.doors.map((door) => door.close()))
    for (const sessions of this.#sessions) sessions.close()
  }

  // ---- who ----

  async judge({ path, publicUrl, ...shown }: Shown): Promise<Judgement> {
    const resource = publicUrl === undefined ? undefined : `${publicUrl}${path}`
    const received = await this.#options.reception().receiveOverWeb({ ...shown, resource })
    if ('identity' in received) return received
    const { refusal, pace } = received
    if (pace === 'closed') return undefined
    if (pace === 'after_pause') await pause(REFUSAL_PAUSE_MS)
    const { reason, why, retryAfterMs } = refusal
    const head = refusalHead(refusal, this.#publicDoor(path, publicUrl), shown.token !== undefined)
    const detail = {
      ...(why === undefined ? {} : { why }),
      ...(retryAfterMs === undefined ? {} : { retry_after_ms: retryAfterMs }),
    }
    return { ...head, reason, detail }
  }

  document(path: string, publicUrl: string | undefined): string | undefined {
    const door = publicUrl === undefined ? undefined : doorPathOfDocument(path, publicUrl)
    if (door === undefined || !this.#isProtected(door)) return undefined
    const described = this.#publicDoor(door, publicUrl)
    return described === undefined ? undefined : JSON.stringify(protectedResource(described))
  }

  /** The bus as a whole, or a path of a door at which a credential is asked for. */
  #isProtected(path: string): boolean {
    const [name = '', pool, ...rest] = segmentsOf(path) ?? ['?']
    if (name === '' || pool === undefined) return path === '' || PROTECTED.has(name)
    return PROTECTED.get(name) === 'pools' && rest.length === 0 && this.pool(pool) !== undefined
  }

  challenge(
    { path, publicUrl }: Pick<Shown, 'path' | 'publicUrl'>,
    mayDo?: (rights: Rights) => boolean,
  ): Readonly<Record<string, string>> {
    const reason = mayDo === undefined ? 'unauthenticated' : 'not_allowed'
    const scope = mayDo === undefined ? undefined : this.#options.reception().scopeThatWouldDo(mayDo)
    const refusal = { reason, ...(scope === undefined ? {} : { scope }) } as const
    return refusalHead(refusal, this.#publicDoor(path, publicUrl), true).headers
  }

  #publicDoor(path: string, publicUrl: string | undefined): PublicDoor | undefined {
    const { access } = this.#options.config()
    if (access?.oauth === undefined || publicUrl === undefined) return undefined
    return { publicUrl, path, oauth: access.oauth }
  }

  open(entrance: MessageEntrance, admitted: Admitted, peer: string, listener: MessageListener): MessageClient {
    const { daemon, reception } = this.#options
    return daemon.openMessages({ ...entrance, via: admitted.via }, listener, (client) =>
      reception().openedOverWeb(client, entrance.door, peer, admitted.proof),
    )
  }

  renew(client: ClientId, { proof, via }: Admitted): void {
    const { daemon, reception } = this.#options
    reception().renewedOverWeb(client, proof)
    if (via !== undefined) daemon.apply({ type: 'client-via', client, via })
  }

  // ---- facts ----

  get busId(): string {
    return this.#options.busId
  }

  mayUse(client: ClientId, pool: PoolId): boolean {
    const rights = this.#options.daemon.rightsOf(client)
    return rights === undefined || mayUsePool(rights, pool)
  }

  pool(id: PoolId): PoolFacts | undefined {
    return this.#options.pools().find((pool) => pool.id === id)
  }

  isUsable(asked?: PoolId): boolean {
    const { workers } = this.#options.daemon.snapshot()
    const isReady = ({ id }: PoolFacts): boolean => workers.some(({ pool, state }) => pool === id && state === 'ready')
    return this.#options
      .config()
      .bus.pools.filter(({ id }) => asked === undefined || id === asked)
      .some(
        (pool) =>
          isReady(pool) ||
          (pool.sharing === 'isolated' && pool.instances === 0) ||
          pool.isLazy === true ||
          pool.isPlaced === true,
      )
  }

  poolOf({ rights }: Identity): PoolId | undefined {
    const { defaultPool, pools } = this.#options.config().bus
    const allowed = pools.filter(({ id }) => mayUsePool(rights, id))
    if (defaultPool !== undefined && allowed.some(({ id }) => id === defaultPool)) return defaultPool
    return allowed.length === 1 ? allowed[0]!.id : undefined
  }

  get maxMessageBytes(): number {
    return this.#options.config().bus.limits.maxInputBufferBytes
  }

  get hasAccess(): boolean {
    return this.#options.config().access !== undefined
  }

  metrics(): string {
    return formatMetrics(this.#options.status())
  }

  denied({ identity }: Admitted, peer: string, what: { readonly pool?: PoolId; readonly method?: string }): void {
    this.#options.reception().denied(identity, { door: 'http', peer, ...what })
  }

  refused(reason: string): void {
    this.refusedByReason.set(reason, (this.refusedByReason.get(reason) ?? 0) + 1)
  }

  streamBegan(): void {
    this.#streamCount++
  }

  streamEnded(): void {
    this.#streamCount--
  }

  /** What there is at the doors now (contract 10.18). */
  get figures(): NonNullable<Status['web']> {
    return {
      connections: this.doors.reduce((sum, { connectionCount }) => sum + connectionCount, 0),
      mcp_sessions: this.#sessions.reduce((sum, { count }) => sum + count, 0),
      acp_connections: this.#acp.size,
      streams: this.#streamCount,
    }
  }

  log(level: 'debug' | 'info' | 'warn', text: string, about: Readonly<Record<string, unknown>> = {}): void {
    this.#options.log.write(level, text, about)
  }
}

/** The console comes as whoever has logged in. */
function consoleEntrance({ identity }: Admitted, isQuiet: boolean, pool: PoolId | undefined): MessageEntrance {
  return { door: 'http', isLocal: false, identity, pool, ...(isQuiet ? { isQuiet } : {}) }
}
