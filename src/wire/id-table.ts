/**
 * A table from ids to rows for the way of every message: like a Map, without the garbage.
 *
 * A Map leaves dead tables behind when entries come and go, and those keep dead requests alive through many collections;
 * under load that costs more than the routing. Here entries lie in two arrays, probed in a line; what leaves a gap moves
 * up, so nothing dead is ever kept. The seed makes places unpredictable: a peer cannot choose ids that collide.
 */
import type { IdKey } from './envelope.ts'

const SMALLEST = 4
/** A table up to this size is not made smaller: bursts would make it grow and shrink all the time. */
const KEPT = 4_096

export class IdTable<Row> {
  readonly #seed: number
  #keys: (IdKey | undefined)[] = new Array(SMALLEST).fill(undefined)
  #rows: (Row | undefined)[] = new Array(SMALLEST).fill(undefined)
  #mask = SMALLEST - 1
  /** Who is looked for is mostly entered or removed next: its place is remembered until places change. */
  #probed: IdKey | undefined
  #probedPlace = 0
  size = 0

  constructor(seed: number) {
    this.#seed = seed | 1
  }

  has(key: IdKey): boolean {
    return this.#keys[this.#placeOf(key)] !== undefined
  }

  get(key: IdKey): Row | undefined {
    return this.#rows[this.#placeOf(key)]
  }

  set(key: IdKey, row: Row): void {
    const place = this.#placeOf(key)
    this.#rows[place] = row
    if (this.#keys[place] !== undefined) return
    this.#keys[place] = key
    this.size++
    if (this.size * 2 > this.#mask) this.#resize((this.#mask + 1) * 2)
  }

  delete(key: IdKey): boolean {
    const place = this.#placeOf(key)
    if (this.#keys[place] === undefined) return false
    this.#closeGap(place)
    this.size--
    if (this.#mask >= KEPT && this.size * 32 < this.#mask) this.#resize((this.#mask + 1) / 4)
    return true
  }

  /** In no order that means anything. */
  *values(): Generator<Row> {
    for (const row of [...this.#rows]) if (row !== undefined) yield row
  }

  clear(): void {
    this.size = 0
    this.#allot(SMALLEST)
  }

  /** Where the key stands, or would. */
  #placeOf(key: IdKey): number {
    if (key === this.#probed) return this.#probedPlace
    const keys = this.#keys
    const mask = this.#mask
    let place = this.#hash(key) & mask
    for (let at = keys[place]; at !== undefined && at !== key; at = keys[place]) place = (place + 1) & mask
    this.#probed = key
    this.#probedPlace = place
    return place
  }

  #hash(key: IdKey): number {
    if (typeof key === 'string') return this.#hashText(key)
    const number = typeof key === 'number' ? key : Number(BigInt.asIntN(52, key))
    return mix((number | 0) ^ Math.imul((number / 0x1_0000_0000) | 0, 0x85ebca6b), this.#seed)
  }

  #hashText(text: string): number {
    let hash = text.length
    for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
    return mix(hash, this.#seed)
  }

  /** Whoever was pushed on by the one that left moves up. */
  #closeGap(gap: number): void {
    this.#probed = undefined
    const mask = this.#mask
    let hole = gap
    let place = (gap + 1) & mask
    for (let key = this.#keys[place]; key !== undefined; key = this.#keys[place]) {
      const home = this.#hash(key) & mask
      if (((place - home) & mask) >= ((place - hole) & mask)) {
        this.#keys[hole] = key
        this.#rows[hole] = this.#rows[place]
        hole = place
      }
      place = (place + 1) & mask
    }
    this.#keys[hole] = undefined
    this.#rows[hole] = undefined
  }

  #resize(capacity: number): void {
    const keys = this.#keys
    const rows = this.#rows
    this.#allot(Math.max(SMALLEST, capacity))
    for (let i = 0; i < keys.length; i++) {
      const key = keys[i]
      if (key === undefined) continue
      const place = this.#placeOf(key)
      this.#keys[place] = key
      this.#rows[place] = rows[i]
    }
    // A dead array in old memory would keep its rows alive.
    keys.length = 0
    rows.length = 0
  }

  #allot(capacity: number): void {
    this.#probed = undefined
    this.#keys = new Array(capacity).fill(undefined)
    this.#rows = new Array(capacity).fill(undefined)
    this.#mask = capacity - 1
  }
}

function mix(value: number, seed: number): number {
  let hash = Math.imul(value ^ seed, 0x9e3779b1)
  hash ^= hash >>> 15
  hash = Math.imul(hash, 0x85ebca77)
  return hash ^ (hash >>> 13)
}
