import { resolve, sep } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { verifies } from '../../../test/conformance/verifies.ts'
import { splitEntryPath, staysInside } from './entry-path.ts'

const part = fc.constantFrom('a', 'b', '..', '.', '', 'c d', '...', '\\', 'C:')
const path = fc.array(part, { maxLength: 8 }).map((parts) => parts.join('/'))

describe('names in an archive', () => {
  it('never leave the root, whatever they are', () => {
    verifies('R3-whole')
    fc.assert(
      fc.property(path, (name) => {
        const parts = splitEntryPath(name)
        if (parts === undefined) return
        const place = resolve('/root', ...parts)
        expect(place === '/root' || place.startsWith(`/root${sep}`)).toBe(true)
      }),
    )
  })

  it('are accepted when they go down only', () => {
    fc.assert(
      fc.property(fc.array(fc.stringMatching(/^[a-z]{1,5}$/), { minLength: 1, maxLength: 6 }), (parts) => {
        expect(splitEntryPath(`./${parts.join('/')}`)).toEqual(parts)
      }),
    )
  })
})

/** Follows a path through a tree of links as a system does; undefined when it would go above the root. */
function follow(
  links: ReadonlyMap<string, string>,
  from: readonly string[],
  path: string,
  fuel = 40,
): readonly string[] | undefined {
  let at = [...from]
  for (const step of path.split('/').filter((name) => name !== '' && name !== '.')) {
    if (step === '..' && at.length === 0) return undefined
    at = step === '..' ? at.slice(0, -1) : [...at, step]
    const target = links.get(at.join('/'))
    if (target === undefined) continue
    if (fuel === 0) return at
    const end = follow(links, at.slice(0, -1), target, fuel - 1)
    if (end === undefined) return undefined
    at = [...end]
  }
  return at
}

describe('links in an archive', () => {
  const name = fc.constantFrom('a', 'b', 'c')
  const place = fc.array(name, { minLength: 1, maxLength: 4 })
  const target = fc.array(fc.constantFrom('a', 'b', 'c', '..', '.'), { minLength: 1, maxLength: 6 })

  it('lead nowhere above the root, however they are chained', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(place, target), { maxLength: 6 }), (pairs) => {
        const links = new Map<string, string>()
        for (const [at, parts] of pairs) {
          if (staysInside(parts.join('/'), at.length - 1)) links.set(at.join('/'), parts.join('/'))
        }
        // A link that lies below another one cannot be made: its parent is no folder.
        for (const at of [...links.keys()]) {
          if ([...links.keys()].some((other) => at.startsWith(`${other}/`))) links.delete(at)
        }
        for (const at of links.keys()) expect(follow(links, [], at)).toBeDefined()
      }),
      { numRuns: 2_000 },
    )
  })
})
