/** Shorthand for the configurations of tests: pools made of the fixture workers. */
import { fileURLToPath } from 'node:url'

const FIXTURES = fileURLToPath(new URL('../fixtures/workers/', import.meta.url))

export interface PoolOptions {
  readonly id?: string
  readonly args?: readonly string[]
  readonly instances?: number
  readonly [key: string]: unknown
}

/** A pool of the fixture worker `name`; its id is the name unless said otherwise. */
export function pool(name: string, { id = name, args = [], instances = 1, ...more }: PoolOptions = {}) {
  return { id, command: process.execPath, args: [`${FIXTURES}${name}.mjs`, ...args], instances, ...more }
}

/** A configuration with these pools and limits. */
export function config(pools: object | readonly object[], limits: Record<string, number> = {}, more: object = {}) {
  return { pools: Array.isArray(pools) ? pools : [pools], limits, ...more }
}
