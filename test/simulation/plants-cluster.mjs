/** Bugs between nodes: credit, offsets, receipts, resending, epochs and presence (contract 14.5, 14.7); found in worlds of several nodes. */
import { plant } from './plant.mjs'

const between = (name, file, find, replace) => ({
  ...plant(name, `../cluster/${file}`, find, replace),
  world: 'cluster',
})

export const PLANTS_OF_CLUSTERS = [
  between(
    'what is sent again needs no credit of the node',
    'link.ts',
    'this.#sent + this.#partBytes - this.#readByOther < this.#credit || out.isNextEnd',
    'this.#sent + this.#partBytes - this.#readByOther < this.#credit || out.waitingBytes === 0',
  ),
  between(
    'a node may have as much under way to it as anybody likes',
    'link.ts',
    'this.#sent + this.#partBytes - this.#readByOther < this.#credit || out.isNextEnd',
    'true',
  ),
  between(
    'what was read is not given back',
    'link.ts',
    'if (head.read <= this.#sent) this.#readByOther = Math.max(this.#readByOther, head.read)',
    '',
  ),
  between(
    'a stream goes beyond its window',
    'outgoing.ts',
    'Math.min(maxBytes, this.limit - this.sent, CLUSTER.windowBytes - (this.sent - this.acked))',
    'maxBytes',
  ),
  between(
    'bytes that came before are handed on again',
    'incoming.ts',
    "    if (from >= bytes.length || this.reason !== undefined) return 'old'\n    if (offset + bytes.length > this.limit) return 'beyond'\n    const fresh = from === 0 ? bytes : bytes.subarray(from)",
    "    if (this.reason !== undefined) return 'old'\n    const fresh = bytes",
  ),
  between(
    'what comes too early is taken',
    'incoming.ts',
    "    if (offset > this.received) return 'early'\n    const from = this.received - offset",
    '    const from = Math.max(0, this.received - offset)',
  ),
  between(
    'what is not acknowledged is not sent again',
    'outgoing.ts',
    '    this.#again = this.acked\n    return bytes',
    '    return bytes',
  ),
  between(
    'a receipt is believed for what it does not name',
    'outgoing.ts',
    'this.#retained.filter((piece) => piece.offset + piece.bytes.length > offset)',
    'this.#retained.filter((piece) => piece.offset > offset)',
  ),
  between(
    'frames of an older epoch are believed',
    'link.ts',
    'head.toRun !== this.#ownRun || head.fromRun !== this.run || head.epoch < this.epoch',
    'head.toRun !== this.#ownRun || head.fromRun !== this.run',
  ),
  between(
    'a newer epoch ends no stream',
    'link.ts',
    'if (head.epoch > this.epoch) this.#begin(head.epoch)',
    'if (head.epoch > this.epoch) this.epoch = head.epoch',
  ),
  between(
    'who gives a node up begins no new epoch',
    'link.ts',
    'this.#begin(this.epoch + 1)',
    'this.#begin(this.epoch)',
  ),
  between(
    'a run that is met again is as it was left',
    'link.ts',
    'this.#begin(before === undefined ? 0 : before + 1)',
    'this.#begin(0)',
  ),
  between('a silent node is never lost', 'presence.ts', 'nowMs - row.heardMs >= this.lostAfterMs', 'false'),
  between(
    'a node that is back as another run is taken for the same',
    'cluster.ts',
    '    this.#links.get(node)?.meet(run)\n    this.#port.changed()',
    '    this.#port.changed()',
  ),
]
