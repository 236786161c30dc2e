/** Damages bytes the way fuzzers do: changed, lost, doubled and added bytes, cut ends, and pieces of other inputs. */
const TELLING = Buffer.from('{}[]",:\\eE+-.0u/\r\t \0\x1f\x7f')
/** Starts, middles and ends of UTF-8 sequences, good and bad. */
const FOREIGN = [0x80, 0xbf, 0xc0, 0xc1, 0xc3, 0xdf, 0xe0, 0xed, 0xef, 0xbb, 0xf0, 0xf4, 0xf5, 0xff, 0xa0, 0x9f]
const MAX_PIECE_BYTES = 24

function someByte(random) {
  const kind = random.between(0, 4)
  return kind < 3 ? random.pick(TELLING) : kind === 3 ? random.pick(FOREIGN) : random.between(0, 255)
}

const join = (...parts) => Buffer.concat(parts)

const WAYS = [
  (bytes, at, random) => join(bytes.subarray(0, at), Buffer.from([someByte(random)]), bytes.subarray(at + 1)),
  (bytes, at, random) => join(bytes.subarray(0, at), Buffer.from([someByte(random)]), bytes.subarray(at)),
  (bytes, at) => join(bytes.subarray(0, at), bytes.subarray(at + 1)),
  (bytes, at) => bytes.subarray(0, at),
  (bytes, at, random) => join(bytes.subarray(0, at), bytes.subarray(at + random.between(1, MAX_PIECE_BYTES))),
  (bytes, at, random) => join(bytes.subarray(0, at + random.between(1, MAX_PIECE_BYTES)), bytes.subarray(at)),
  (bytes, at, random, other) => {
    const from = random.between(0, other.length)
    const piece = other.subarray(from, from + random.between(1, MAX_PIECE_BYTES))
    return join(bytes.subarray(0, at), piece, bytes.subarray(at + random.between(0, piece.length)))
  },
  (bytes, at, random, other) => join(bytes.subarray(0, at), other.subarray(random.between(0, other.length))),
]

/** `bytes` with one to three wounds; `other` is where foreign pieces come from. */
export function mutate(bytes, random, other) {
  let hurt = bytes
  for (let wounds = random.pick([1, 1, 1, 2, 3]); wounds > 0; wounds--) {
    hurt = random.pick(WAYS)(hurt, random.between(0, hurt.length), random, other)
  }
  return hurt
}
