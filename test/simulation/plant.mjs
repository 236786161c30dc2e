/** A planted bug as data; see `plants.mjs`. */
export const plant = (name, file, find, replace) => ({ name, file, find, replace })
