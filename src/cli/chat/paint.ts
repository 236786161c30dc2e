/** Colours of the terminal: a set of them, all of which do nothing where there are none. */
import type { createColors } from 'picocolors'

export type Colors = ReturnType<typeof createColors>

/** Puts colours around a text. */
export type Paint = (text: string) => string
