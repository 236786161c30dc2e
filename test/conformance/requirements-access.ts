/** Who is there and what they may do, as data; an id begins with its clause of `docs/spec.md`. */
export const ACCESS = {
  '9.7-form': 'a token is its prefix, 43 random characters and a checksum; with one character changed it is none',
  '9.8-add': 'token add prints the token alone on stdout, once; the file has its digest; without --pools it says so',
  '9.8-ls': 'token ls shows neither token nor digest',
  '9.8-rm': 'token rm takes a principal out',
  '9.8-rotate': 'token rotate gives a new token; the old ones end, at once or after --keep',
  '9.8-test': 'token test is exit 0, or 1 naming the rule',
  '9.8-exit-codes': 'a taken or reserved name and a bad flag are exit 2, an unknown name is 1',
  '9.8-edits': 'edits of the access file lose nothing, not even at once, and keep comments; mode 0600',
  '9.9-mistakes': 'mistakes in the access file come together, each with its place, and show no secret',
  '9.9-bounds': 'at most 10,000 principals, 8 tokens each, 256 patterns of 256 characters',
  '9.9-modes': 'an access file that others may use, of another user, too large or no plain file is refused',
  '9.9-old-rights-stay': 'a later change with mistakes is told, and changes nothing',
  '9.10-watched': 'a change of the access file is seen without a reload',
} as const
