/**
 * Every attack by its name. `asks`: its bus has agents. `worst`: how many times as long as in quiet the answers of others
 * may take, where it is not the usual, and `because` says why.
 */
import { CALLS } from './calls.mjs'
import { FLOODS } from './floods.mjs'
import { SHAPES } from './shapes.mjs'

export const ATTACKS = { ...FLOODS, ...SHAPES, ...CALLS }
