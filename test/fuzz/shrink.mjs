/**
 * Makes a failing list (of bytes, lines or chunks) smaller as long as it still fails: takes out pieces, large ones first.
 *
 * It gives back the smallest that was found within `attempts`; it need not be the smallest there is.
 */
/** Pieces up to this size are tried at every place: an entry of an object, a pair of brackets. */
const MOST_TOGETHER = 16

export async function shrinkList(list, stillFails, attempts) {
  let left = attempts
  let smallest = list
  const sweep = async (piece) => {
    for (let at = 0; at + piece <= smallest.length && left > 0; ) {
      const without = [...smallest.slice(0, at), ...smallest.slice(at + piece)]
      left--
      if (await stillFails(without)) smallest = without
      else at += 1
    }
  }
  for (let piece = list.length >> 1; piece > MOST_TOGETHER; piece >>= 1) await sweep(piece)
  for (let before = Number.POSITIVE_INFINITY; smallest.length < before && left > 0; ) {
    before = smallest.length
    for (let piece = Math.min(MOST_TOGETHER, before); piece >= 1; piece--) await sweep(piece)
  }
  return smallest
}
