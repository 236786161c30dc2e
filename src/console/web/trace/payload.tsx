/** What a call carried, as it is stored: what was redacted, cut or lost is said (contract 15.9). */
import { Fragment } from 'preact'
import { useState } from 'preact/hooks'
import { Preformatted } from '../parts/preformatted.tsx'
import { bytes, shown } from '../text.ts'
import type { Side, WholeCall } from './trace.ts'

const REDACTED = '"[redacted]"'
/** So much is drawn without being asked for. */
const MOST_CHARS = 40_000

const TITLES = { input: 'Input', output: 'Output' } as const

export function Payload({ call, side }: { readonly call: WholeCall; readonly side: Side }) {
  const value = call[side]
  const isCut = call.truncated?.includes(side) === true
  const isLost = call.lost?.includes(side) === true
  return (
    <section class="payload" aria-label={TITLES[side]}>
      <h3>
        {TITLES[side]}
        {isCut && <CutNote value={value} />}
        {isLost && <span class="note-mark">lost: it was given up under load</span>}
      </h3>
      {value === null || value === undefined ? (
        <p class="quiet">{isLost ? 'Nothing of it is kept.' : absent(call, side)}</p>
      ) : (
        <Json text={isCut ? headOf(value) : JSON.stringify(value, null, 2)} />
      )}
    </section>
  )
}

function absent({ status }: WholeCall, side: Side): string {
  if (side === 'input') return 'Nothing was given.'
  return status === 'pending' ? 'Not answered yet.' : 'Nothing came back.'
}

interface Cut {
  readonly bytes?: number
  readonly head?: string
}

function CutNote({ value }: { readonly value: unknown }) {
  const { bytes: whole, head } = (value ?? {}) as Cut
  const kept = head === undefined ? '' : ` at ${bytes(new TextEncoder().encode(head).length)}`
  return (
    <span class="note-mark">
      cut{kept}
      {whole !== undefined && ` of ${bytes(whole)}`}
    </span>
  )
}

function headOf(value: unknown): string {
  const { head } = (value ?? {}) as Cut
  return typeof head === 'string' ? `${head} …` : JSON.stringify(value, null, 2)
}

export function Json({ text }: { readonly text: string }) {
  const [isWhole, setWhole] = useState(false)
  const isLong = text.length > MOST_CHARS && !isWhole
  const pieces = (isLong ? text.slice(0, MOST_CHARS) : text).split(REDACTED)
  return (
    <>
      <Preformatted kind="json">
        {pieces.map((piece, index) => (
          <Fragment key={index}>
            {index > 0 && <mark>[redacted]</mark>}
            {shown(piece)}
          </Fragment>
        ))}
      </Preformatted>
      {isLong && (
        <button type="button" class="small" onClick={() => setWhole(true)}>
          Show all {bytes(text.length)}
        </button>
      )}
    </>
  )
}
