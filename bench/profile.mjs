/** Reads the CPU profiles a bus left behind and tells in which functions it spent its own time. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const TOP = 30
/** The start of the program is not what is measured. */
const START_US = 1_000_000

export function topFunctions(folder) {
  const selfUs = new Map()
  for (const name of readdirSync(folder)) addProfile(JSON.parse(readFileSync(join(folder, name), 'utf8')), selfUs)
  const busyUs = [...selfUs].reduce((sum, [name, us]) => (name.startsWith('(idle)') ? sum : sum + us), 0)
  return [...selfUs]
    .filter(([name]) => !name.startsWith('(idle)'))
    .sort(([, a], [, b]) => b - a)
    .slice(0, TOP)
    .map(([name, us]) => `${((us / busyUs) * 100).toFixed(1).padStart(5)} %  ${name}`)
    .join('\n')
}

function addProfile({ nodes, samples, timeDeltas }, selfUs) {
  const nameById = new Map(nodes.map(({ id, callFrame }) => [id, nameOf(callFrame)]))
  let atUs = 0
  samples.forEach((id, index) => {
    atUs += timeDeltas[index]
    if (atUs < START_US) return
    const name = nameById.get(id)
    selfUs.set(name, (selfUs.get(name) ?? 0) + timeDeltas[index])
  })
}

function nameOf({ functionName, url, lineNumber }) {
  const file = url.replace(/^.*\/dist\//, '')
  return `${functionName || '(anonymous)'}  ${file}${file === '' ? '' : `:${lineNumber + 1}`}`
}
