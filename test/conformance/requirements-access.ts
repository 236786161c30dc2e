/** Who is there and what they may do, as data; an id begins with its clause of `docs/spec.md`. */
export const ACCESS = {
  '9.7-form': 'a token is its prefix, 43 random characters and a checksum; with one character changed it is none',
} as const
