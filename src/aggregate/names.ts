/**
 * The name under which a tool or a prompt of a member is listed (contract 13.4).
 *
 * A function of the file and the own name alone: who else is up changes nothing, so that what hosts and policies remember
 * stays true. Every name fits `^[A-Za-z0-9_-]{1,64}$`.
 */
import { createHash } from 'node:crypto'
import { matchesAny } from '../kernel/rights.ts'
import type { MemberSpec } from './spec.ts'

const HASH_LENGTH = 8
const OUTSIDE = /[^A-Za-z0-9_-]/g

/** The member shows it. */
export function isShown({ allow, deny }: MemberSpec, own: string): boolean {
  return matchesAny(allow, own) && !matchesAny(deny, own)
}

export function listedName(member: MemberSpec, own: string, maxLength: number): string {
  const { pool, prefix, rename } = member
  return rename.get(own) ?? fitted(`${prefix ?? `${pool}_`}${own}`, hashOf(pool, own), maxLength)
}

/** For one whose name an earlier member has (contract 13.5). */
export function prefixedName({ pool }: MemberSpec, own: string, maxLength: number): string {
  return fitted(`${pool}_${own}`, hashOf(pool, own), maxLength)
}

/** For one whose prefixed name is taken as well, by a new name of another. */
export function hashedName({ pool }: MemberSpec, own: string, maxLength: number): string {
  return cut(`${pool}_${own}`.replace(OUTSIDE, '_'), hashOf(pool, own), maxLength)
}

function fitted(name: string, hash: () => string, maxLength: number): string {
  const clean = name.replace(OUTSIDE, '_')
  return clean === name && name.length <= maxLength && name !== '' ? name : cut(clean, hash, maxLength)
}

function cut(name: string, hash: () => string, maxLength: number): string {
  return `${name.slice(0, maxLength - HASH_LENGTH - 1)}_${hash()}`
}

function hashOf(pool: string, own: string): () => string {
  return () => createHash('sha256').update(`${pool}/${own}`).digest('hex').slice(0, HASH_LENGTH)
}
