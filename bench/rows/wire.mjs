/**
 * Framing and envelope alone: chunks as a socket delivers them, split and read in this process. No target: what counts is the whole bus.
 */
import { measure } from 'mitata'
import { headBytes, idOf, PATCH_AT, patchOf, tailBytes } from '../line.mjs'

const CHUNK_BYTES = 65_536
const MAX_LINE_BYTES = 1024 * 1024

const lines = [
  { name: 'request-150B', lineBytes: 150, shape: 'flat' },
  { name: 'answer-150B', lineBytes: 150, shape: 'flat', answer: true },
  { name: 'flat-64KiB', lineBytes: 65_536, shape: 'flat' },
  { name: 'text-64KiB', lineBytes: 65_536, shape: 'text' },
  { name: 'nested-64KiB', lineBytes: 65_536, shape: 'nested' },
]

/** As many whole lines as fit in one chunk. */
function chunkOf(layout) {
  const count = Math.floor(CHUNK_BYTES / layout.lineBytes)
  const tail = tailBytes(layout)
  const all = Array.from({ length: count }, (_, slot) => {
    const line = Buffer.concat([headBytes(idOf(0, slot, count)), tail])
    if (layout.answer) patchOf().copy(line, PATCH_AT)
    return line
  })
  return { chunk: Buffer.concat(all), count }
}

async function parts() {
  const { LineSplitter } = await import('../../dist/wire/frame.js')
  const { Envelope, SHAPE } = await import('../../dist/wire/envelope.js')
  return { splitter: new LineSplitter(MAX_LINE_BYTES), envelope: new Envelope(), SHAPE }
}

async function nanosecondsPerLine(bench, layout, work) {
  const { chunk, count } = chunkOf(layout)
  const { p50 } = await measure(() => work(chunk), { min_cpu_time: bench.pace.wireMs * 1e6 })
  return { cpuUsPerLine: p50 / count / 1000, mibPerSecond: chunk.length / 2 ** 20 / (p50 / 1e9) }
}

async function frameAlone(bench, layout) {
  const { splitter } = await parts()
  let ends = 0
  return nanosecondsPerLine(bench, layout, (chunk) => {
    splitter.push(chunk, 0, (_bytes, _start, end) => (ends += end) > 0)
    return ends
  })
}

async function frameAndEnvelope(bench, layout) {
  const { splitter, envelope, SHAPE } = await parts()
  const wanted = layout.answer ? SHAPE.response : SHAPE.request
  return nanosecondsPerLine(bench, layout, (chunk) => {
    splitter.push(chunk, 0, (bytes, start, end) => {
      if (envelope.read(bytes, start, end) !== wanted) throw new Error(`misread: ${envelope.problem}`)
      return true
    })
  })
}

export const wireRows = lines.flatMap((layout) => [
  { name: `frame-${layout.name}`, measure: (bench) => frameAlone(bench, layout) },
  { name: `frame-envelope-${layout.name}`, measure: (bench) => frameAndEnvelope(bench, layout) },
])
