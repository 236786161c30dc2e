/** What a principal may do and what is left of it (clause 9), as data; an id begins with its clause of `docs/spec.md`. */
export const RIGHTS = {
  '9.20-hidden': "hidden tools are taken out of the answer to tools/list, wherever they stand, and no other tool's",
  '9.20-bytes': 'every other byte of the list stays as it was',
  '9.20-nameless': 'an entry whose name is missing, twice or no string is hidden',
  '9.20-cache-scope': 'cacheScope public becomes private',
  '9.20-bad-list': 'where a list must be and there is none, or there are two, it is a bad_list',
} as const
