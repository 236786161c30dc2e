/** The rooms of the router that need each other; the router fills it once, before the first line comes. */
import type { Assignment } from './assignment.ts'
import type { Handshakes } from './handshakes.ts'

export class Links {
  assignment!: Assignment
  handshakes!: Handshakes
}
