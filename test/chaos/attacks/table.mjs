/** Every attack by its name. */
import { FLOODS } from './floods.mjs'
import { SHAPES } from './shapes.mjs'

export const ATTACKS = { ...FLOODS, ...SHAPES }
