/**
 * Tables that most peers never need: those who have nothing share one that is empty, so that an idle client is small, and so
 * is a worker that is one client's alone.
 *
 * Invariant: nothing is ever put into the shared ones; whoever adds takes `ownMap` or `ownSet` first.
 */
const MAP = new Map<never, never>()
const SET = new Set<never>()

export function emptyMap<Key, Value>(): Map<Key, Value> {
  return MAP
}

export function emptySet<Value>(): Set<Value> {
  return SET
}

export function ownMap<Key, Value>(map: Map<Key, Value>): Map<Key, Value> {
  return map === MAP ? new Map() : map
}

export function ownSet<Value>(set: Set<Value>): Set<Value> {
  return set === SET ? new Set() : set
}
