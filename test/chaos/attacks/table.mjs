/** Every attack by its name. */
import { CALLS } from './calls.mjs'
import { FLOODS } from './floods.mjs'
import { SHAPES } from './shapes.mjs'

export const ATTACKS = { ...FLOODS, ...SHAPES, ...CALLS }
