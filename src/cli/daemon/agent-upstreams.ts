/** Connections to MCP agents at URLs, with the same means as pools that are upstreams (contract 13.17). */
import type { OpenUpstream } from '../../aio/port.ts'
import { connectHttp } from '../../remote/mcp/http-upstream.ts'
import { UpstreamFailure } from '../../remote/upstream.ts'
import { LineSplitter } from '../../wire/frame.ts'

const CONNECT_TIMEOUT_MS = 10_000
/** What is said of credentials that are not taken. */
const CREDENTIALS = /credentials/

export const openAgentUpstream: OpenUpstream = async ({ url, headers, maxMessageBytes }, hear) => {
  const upstream = { url: new URL(url), headers, tls: {}, connectTimeoutMs: CONNECT_TIMEOUT_MS, maxMessageBytes }
  const abort = new AbortController()
  let isClosed = false
  const lost = (failure: UpstreamFailure): void => {
    if (isClosed) return
    isClosed = true
    // What it has said before comes first.
    setImmediate(() => hear({ lost: failure.why, isUnauthorized: CREDENTIALS.test(failure.why) }))
  }
  const { stream } = await connectHttp(upstream, { vias: [], signal: abort.signal, lost, note: () => {} })
  const lines = new LineSplitter(maxMessageBytes)
  stream.on('data', (chunk: Buffer) =>
    lines.push(chunk, 0, (bytes, start, end) => {
      hear({ line: Buffer.from(bytes.subarray(start, end)) })
      return true
    }),
  )
  stream.on('error', (cause) => lost(new UpstreamFailure('it broke the connection off', { cause })))
  return {
    send: (line) => {
      if (!isClosed) stream.write(`${line}\n`)
    },
    close: () => {
      isClosed = true
      stream.end()
    },
  }
}
