/**
 * Runs a target that is a function of its input: the corpus first, then as many made inputs as were asked for.
 *
 * An exception is a finding like any other. A failing input is shrunk while it fails in the same way, and kept.
 */
import { shrinkList } from './shrink.mjs'

const MAX_FINDINGS = 5
const SHRINK_ATTEMPTS = 3_000
const PROGRESS_EVERY = 5_000
/** The kinds of inputs are counted in a sample: it shows that a run met all of them. */
const SAMPLE_EVERY = 16

function judge(target, input) {
  try {
    return target.check(input)
  } catch (error) {
    return `throws: ${error.stack}`
  }
}

const kindOf = (finding) => finding?.split(':')[0]

async function report(target, input, finding, { corpus, tell }) {
  const fails = (parts) => kindOf(judge(target, target.fromParts(parts, input))) === kindOf(finding)
  const small = target.fromParts(await shrinkList(target.partsOf(input), fails, SHRINK_ATTEMPTS), input)
  const line = target.encode(small)
  corpus.keep(target.name, line)
  tell(`FOUND by ${target.name}: ${judge(target, small) ?? finding}\n  input: ${line}`)
}

export async function plunge(target, random, count, given) {
  const startMs = performance.now()
  const tally = { name: target.name, inputs: 0, findings: 0, kinds: {} }
  const take = async (input) => {
    if (tally.inputs++ % SAMPLE_EVERY === 0)
      tally.kinds[target.kindOf(input)] = (tally.kinds[target.kindOf(input)] ?? 0) + 1
    const finding = judge(target, input)
    if (finding === undefined) return
    tally.findings++
    await report(target, input, finding, given)
  }
  for (const line of given.corpus.lines(target.name)) for (const input of target.decode(line)) await take(input)
  for (let made = 0; made < count && tally.findings < MAX_FINDINGS; made++) {
    const finding = take(target.generate(random))
    if (made % PROGRESS_EVERY === 0) given.progress(`${target.name} ${made} of ${count}`)
    await finding
  }
  tally.seconds = (performance.now() - startMs) / 1000
  return tally
}
