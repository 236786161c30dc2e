/**
 * Makes a failing list (of bytes, lines or chunks) smaller as long as it still fails: takes out pieces, large ones first.
 *
 * It gives back the smallest that was found within `attempts`; it need not be the smallest there is.
 */
export async function shrinkList(list, stillFails, attempts) {
  let left = attempts
  let smallest = list
  for (let piece = Math.ceil(list.length / 2); piece >= 1 && left > 0; piece = piece === 1 ? 0 : Math.ceil(piece / 2)) {
    for (let at = 0; at < smallest.length && left > 0; ) {
      const without = [...smallest.slice(0, at), ...smallest.slice(at + piece)]
      left--
      if (await stillFails(without)) smallest = without
      else at += piece
    }
  }
  return smallest
}
