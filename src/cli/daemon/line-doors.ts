/**
 * The doors through which clients come as streams of lines: stdio, Unix sockets, TCP, TLS.
 *
 * It judges nobody: whoever comes is taken by the reception of the moment. Nobody is taken before the workers have been
 * started; whoever comes earlier waits, and is heard only then (contract 3.1).
 */
import type { Duplex } from 'node:stream'
import type { Listen } from '../../config/bus-config.ts'
import type { PoolId } from '../../kernel/vocabulary.ts'
import type { ConnectionInfo, Listener } from '../../transports/listener.ts'
import { openStdio } from '../../transports/stdio.ts'
import { listenTcp } from '../../transports/tcp.ts'
import { listenUnix } from '../../transports/unix.ts'
import type { Daemon } from './daemon.ts'
import type { Edges } from './edges.ts'
import { type Embedding, followClient } from './embedding.ts'
import type { Log } from './log.ts'
import type { Reception } from './open-doors.ts'
import { stdioStreams } from './typed-input.ts'

export interface LineDoorsOptions {
  readonly daemon: Daemon
  readonly log: Log
  readonly edges: Edges
  readonly reception: () => Reception
  readonly embedding: Embedding | undefined
}

export class LineDoors {
  readonly #options: LineDoorsOptions
  readonly #listeners: Listener[] = []
  /** Connections that came before the workers were started. */
  #early: (() => void)[] | undefined = []

  constructor(options: LineDoorsOptions) {
    this.#options = options
  }

  get addresses(): readonly string[] {
    return this.#listeners.map(({ address }) => address)
  }

  async open({ unix, tcp, tls }: Listen, allowUnauthenticated: boolean): Promise<void> {
    const { log } = this.#options
    const door = { onTrouble: (message: string) => log.write('warn', message) }
    for (const { path, pool } of unix) this.#listeners.push(await listenUnix(path, this.acceptFor(pool), door))
    const open = { ...door, allowUnauthenticated }
    for (const { host, port, pool } of tcp)
      this.#listeners.push(await listenTcp({ host, port }, open, this.acceptFor(pool)))
    const onExchanged = (message: string): void => log.write('info', message)
    for (const { host, port, pool, ...files } of tls) {
      // Only a bus with such a door loads what that needs.
      const { listenTls } = await import('../../transports/tls.ts')
      const address = { host, port }
      this.#listeners.push(await listenTls(address, { ...open, ...files, onExchanged }, this.acceptFor(pool)))
    }
  }

  /** The workers have been started: whoever has come meanwhile is taken. */
  letIn(): void {
    const early = this.#early ?? []
    this.#early = undefined
    for (const take of early) take()
  }

  /** The one client on stdin and stdout, who is there already. */
  openStdio(): void {
    this.#listeners.push(openStdio(this.acceptFor(undefined), stdioStreams()))
  }

  acceptFor(pool: PoolId | undefined): (socket: Duplex, info: ConnectionInfo) => void {
    return (socket, info) => {
      const take = (): void => {
        const isTaken = this.#options.edges.guard('a door', () => this.#take(socket, info, pool), false)
        if (!isTaken) socket.destroy()
      }
      this.inTime(socket, take)
    }
  }

  /** Nobody is taken before the workers have been started. */
  inTime(socket: Duplex, take: () => void): void {
    if (this.#early === undefined) return take()
    // Until it is taken nobody listens to what goes wrong with it.
    socket.on('error', () => socket.destroy())
    this.#early.push(take)
  }

  async close(): Promise<void> {
    await Promise.all(this.#listeners.map((listener) => listener.close()))
  }

  #take(socket: Duplex, info: ConnectionInfo, pool: PoolId | undefined): true {
    const { daemon, embedding } = this.#options
    const reception = this.#options.reception()
    const { door, isLocal } = info
    const entrance = { door, isLocal, ...reception.receive(info) }
    daemon.accept(socket, entrance, pool, (client) => reception.opened(client, info))
    if (embedding !== undefined) followClient(socket, info, embedding.tell)
    return true
  }
}
