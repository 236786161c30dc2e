/** Somebody at the console without a browser: logs in, asks, writes as the page does, and follows topics. */
import { type IncomingMessage, request } from 'node:http'
import { createParser, type EventSourceMessage } from 'eventsource-parser'
import { onTestFinished } from 'vitest'
import type { Bus } from '../support/bus.ts'
import { eventually } from '../support/waiting.ts'
import { type Answered, ask } from '../support/web.ts'

export class Visitor {
  readonly #bus: Bus
  readonly headers: Record<string, string>

  constructor(bus: Bus, headers: Record<string, string>) {
    this.#bus = bus
    this.headers = headers
  }

  get(path: string): Promise<Answered> {
    return ask(this.#bus.url(`/api/${path}`), { headers: this.headers })
  }

  post(path: string, body: object = {}): Promise<Answered> {
    return ask(this.#bus.url(`/api/${path}`), { headers: this.headers, body })
  }

  delete(path: string): Promise<Answered> {
    return ask(this.#bus.url(`/api/${path}`), { headers: this.headers, method: 'DELETE' })
  }

  follow(topics: string, headers: Record<string, string> = {}): Promise<Following> {
    return Following.open(this.#bus.url(`/api/events?topics=${encodeURIComponent(topics)}`), {
      ...this.headers,
      ...headers,
    })
  }
}

/** By a code of the command. */
export async function logIn(bus: Bus, ...flags: string[]): Promise<Visitor> {
  const { stdout } = await bus.run(['console', '--no-open', '--control', bus.control, ...flags])
  const answer = await ask(bus.url('/api/login'), { body: { code: stdout.trim().replace(/^.*#code=/, '') } })
  const cookie = String(answer.headers['set-cookie']).split(';')[0]!
  return new Visitor(bus, { cookie, 'x-csrf-token': answer.json.csrf })
}

export class Following {
  readonly events: EventSourceMessage[] = []
  readonly response: IncomingMessage
  isOver = false

  private constructor(response: IncomingMessage) {
    this.response = response
    const parser = createParser({ onEvent: (event) => void this.events.push(event) })
    response.on('data', (part) => parser.feed(String(part)))
    response.on('close', () => {
      this.isOver = true
    })
    response.on('error', () => {})
    onTestFinished(() => this.close())
  }

  static open(url: string, headers: Record<string, string>): Promise<Following> {
    return new Promise((resolve, reject) => {
      const sent = request(url, { headers })
      sent.once('error', reject)
      sent.once('response', (response) => resolve(new Following(response)))
      sent.end()
    })
  }

  /** What was said in a topic so far. */
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects of it
  of(topic: string): any[] {
    return this.events.filter(({ event }) => event === topic).map(({ data }) => JSON.parse(data))
  }

  /** The first of a topic that fits. */
  // biome-ignore lint/suspicious/noExplicitAny: the same
  first(topic: string, fits: (data: any) => boolean): Promise<any> {
    return eventually(`an event of ${topic}`, () => this.of(topic).find(fits))
  }

  close(): void {
    this.response.destroy()
  }
}
