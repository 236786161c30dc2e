/** One call: how it went, what it carried, and its name to give to others (contract 15.9). */
import { useEffect, useRef } from 'preact/hooks'
import { ApiFailure, may } from '../api.ts'
import { Copy } from '../parts/copy.tsx'
import { useLoaded } from '../parts/loaded.tsx'
import { Empty, Failed, Loading } from '../parts/state.tsx'
import { hrefOf, pathOf } from '../router.ts'
import { brief, bytes, clock, shown } from '../text.ts'
import { Json, Payload } from './payload.tsx'
import { type CallFault, errorLine, MARKS, nameOf, plural, tookOf, type WholeCall } from './trace.ts'

interface CallProps {
  readonly trace: string
  readonly id: string
  /** Changes when there may be more to know of it. */
  readonly version: string | undefined
}

export function CallView({ trace, id, version }: CallProps) {
  const { value, error, again } = useLoaded<WholeCall>(pathOf('traces', trace, 'calls', id))
  const seen = useRef(version)
  useEffect(() => {
    if (seen.current !== version) again()
    seen.current = version
  }, [version, again])
  if (value !== undefined) return <Known trace={trace} call={value} />
  if (error === undefined) return <Loading what="the call" />
  if (!(error instanceof ApiFailure && error.status === 404)) return <Failed error={error} retry={again} />
  return (
    <Empty title="There is no such call">
      <p>
        <a href={hrefOf(pathOf('traces', trace))}>The whole trace</a>
      </p>
    </Empty>
  )
}

function Known({ trace, call }: { readonly trace: string; readonly call: WholeCall }) {
  const name = `${trace}#${call.id}`
  const link = new URL(hrefOf(pathOf('traces', trace, String(call.id))), location.origin).href
  return (
    <>
      <h2>
        <code>{nameOf(call)}</code> {call.target !== undefined && <code>{brief(call.target, 80)}</code>}
      </h2>
      <p class="row call-id">
        <code class="quiet">{brief(name, 300)}</code>
        <Copy title="Copy id" text={name} />
        <Copy title="Copy link" text={link} />
      </p>
      {call.status === 'error' && (
        <p class="bad call-error">
          <span aria-hidden="true">{MARKS.error}</span> {errorLine(call)}
        </p>
      )}
      <p class="quiet call-facts">{factsOf(call).join(' · ')}</p>
      <Payload call={call} side="input" />
      <Payload call={call} side="output" />
      <ErrorData error={call.error} />
      <TryAgain call={call} />
    </>
  )
}

function factsOf(call: WholeCall): string[] {
  const { status, started_at, worker, protocol, type, caller, partials, native_method, method } = call
  const who = caller && [caller.principal, caller.agent, caller.name].filter(Boolean).join(', ')
  const isRenamed = native_method !== undefined && native_method !== method
  return [
    status === 'pending' ? 'open' : `${status}, ${tookOf(call)}`,
    clock(started_at),
    ...(who ? [`by ${brief(who, 80)}`] : []),
    ...(worker === null ? [] : [`worker ${brief(worker, 60)}`]),
    `${brief(protocol, 20)} over ${brief(type, 20)}`,
    ...(isRenamed ? [`as ${brief(native_method, 60)}`] : []),
    `in ${bytes(call.bytes_in)}`,
    `out ${bytes(call.bytes_out)}`,
    ...(partials > 0 ? [plural(partials, 'part')] : []),
  ]
}

function ErrorData({ error }: { readonly error: CallFault | undefined }) {
  if (error?.data === undefined) return null
  return (
    <section class="payload" aria-label="Error data">
      <h3>Error data</h3>
      <Json text={JSON.stringify(error.data, null, 2)} />
    </section>
  )
}

function TryAgain({ call: { agent, target, native_method } }: { readonly call: WholeCall }) {
  if (native_method !== 'tools/call' || target === undefined || !may('user', 'admin')) return null
  return (
    <p class="quiet">
      Try it again: <a href={hrefOf(pathOf('tools', agent, target))}>open {shown(brief(target, 60))} in Tools</a>
    </p>
  )
}
