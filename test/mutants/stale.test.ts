/** Every planted bug still has its line: a mutant or plant that cannot be planted proves nothing. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
// @ts-expect-error a script without types
import { PLANTS } from '../simulation/plants.mjs'
// @ts-expect-error a script without types
import { MUTANTS } from './table.mjs'

interface Planted {
  readonly file: string
  readonly find: string
}

const timesIn = (folder: string, { file, find }: Planted): number =>
  readFileSync(new URL(`../../src/${folder}${file}`, import.meta.url), 'utf8').split(find).length - 1

test.each<Planted>(MUTANTS)('mutant $clause: $breaks', (mutant) => {
  expect(timesIn('', mutant)).toBe(1)
})

test.each<Planted>(PLANTS)('plant: $name', (plant) => {
  expect(timesIn('kernel/', plant)).toBe(1)
})
