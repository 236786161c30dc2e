/** A mutant as data; see `table.mjs`. */
export const row = (clause, tests, file, find, replace, breaks) => ({
  clause,
  tests: tests.split(' '),
  file,
  find,
  replace,
  breaks,
})
