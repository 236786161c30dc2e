/** Reads the answers of one connection from their bytes, and is strict: whatever is no answer of HTTP/1.1 is garbage. */
const STATUS_LINE = /^HTTP\/1\.1 (\d{3}) [ -~]*$/
const HEADER = /^([a-z0-9-]+): ?([\t -~]*)$/i

export class HttpReader {
  answers = []
  garbage
  #held = Buffer.alloc(0)

  take(chunk) {
    this.#held = Buffer.concat([this.#held, chunk])
    while (this.garbage === undefined && this.#readOne()) {}
  }

  /** Bytes that are no whole answer. */
  get rest() {
    return this.#held.length
  }

  #readOne() {
    const end = this.#held.indexOf('\r\n\r\n')
    if (end === -1) return false
    const [statusLine, ...lines] = this.#held.subarray(0, end).toString('latin1').split('\r\n')
    const status = STATUS_LINE.exec(statusLine)?.[1]
    const headers = new Map(
      lines.map((line) => HEADER.exec(line) ?? []).map(([, name, value]) => [name?.toLowerCase(), value]),
    )
    if (status === undefined || headers.has(undefined)) return this.#complain(statusLine)
    if (status === '100') return this.#advance(end + 4)
    return this.#readBody(Number(status), headers, end + 4)
  }

  #readBody(status, headers, start) {
    const isEmpty = status === 204 || !headers.has('content-length')
    const length = isEmpty ? 0 : Number(headers.get('content-length'))
    if (headers.get('transfer-encoding') === 'chunked') return this.#readChunks(status, headers, start)
    if (this.#held.length < start + length) return false
    this.answers.push({ status, headers, body: this.#held.subarray(start, start + length) })
    return this.#advance(start + length)
  }

  #readChunks(status, headers, start) {
    const parts = []
    for (let at = start; ; ) {
      const end = this.#held.indexOf('\r\n', at)
      if (end === -1) return false
      const size = Number.parseInt(this.#held.toString('latin1', at, end), 16)
      if (Number.isNaN(size)) return this.#complain('a chunk without a size')
      if (this.#held.length < end + 2 + size + 2) return false
      parts.push(this.#held.subarray(end + 2, end + 2 + size))
      at = end + 2 + size + 2
      if (size > 0) continue
      this.answers.push({ status, headers, body: Buffer.concat(parts) })
      return this.#advance(at)
    }
  }

  #advance(bytes) {
    this.#held = this.#held.subarray(bytes)
    return this.#held.length > 0
  }

  #complain(text) {
    this.garbage = text
    return false
  }
}
