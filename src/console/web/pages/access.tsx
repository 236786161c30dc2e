/** Who may come and who is there: no token, no digest; Revoke is what `stdio-bus token rm` does (contract 15.12). */
import { useEffect, useState } from 'preact/hooks'
import { ask, may } from '../api.ts'
import { Confirm } from '../parts/confirm.tsx'
import { useLoaded } from '../parts/loaded.tsx'
import { Empty, Failed, Loading } from '../parts/state.tsx'
import { clock, count, shown } from '../text.ts'

interface Principal {
  readonly name: string
  readonly role: string | null
  readonly pools: readonly string[] | null
  readonly is_listed: boolean
  readonly tokens: readonly { readonly expires: string | null }[]
  readonly via: string | null
  readonly connections: number
  readonly pending: number
  readonly refused: number
  readonly last_seen: string | null
}

const LOOK_MS = 3_000
const SOON_MS = 14 * 24 * 60 * 60_000
const COLUMNS = ['Name', 'Role', 'Pools', 'Tokens', 'Via', 'Connections', 'Pending', 'Refused', 'Last seen']

export function Access() {
  const { value, error, again } = useLoaded<{ items: readonly Principal[]; has_access: boolean; next_cursor?: string }>(
    'access?limit=500',
  )
  const [leaving, setLeaving] = useState<string>()
  useEffect(() => {
    const timer = setInterval(again, LOOK_MS)
    return () => clearInterval(timer)
  }, [again])
  return (
    <>
      <h1>Access</h1>
      {value === undefined && error === undefined && <Loading what="who may come" />}
      {error !== undefined && <Failed error={error} retry={again} />}
      {value?.has_access === false && (
        <Empty title="Nobody is told apart">
          <p>
            This bus has no <code>access</code> in its configuration: whoever reaches a door may do everything there.
          </p>
          <p>
            <code>stdio-bus token add NAME</code> makes a principal with a token.
          </p>
        </Empty>
      )}
      {value?.has_access && value.items.length === 0 && (
        <Empty title="Nobody yet">
          <p>
            <code>stdio-bus token add NAME</code> makes a principal with a token.
          </p>
        </Empty>
      )}
      {value !== undefined && value.items.length > 0 && (
        <section class="card">
          <Principals items={value.items} revoke={setLeaving} />
          {value.next_cursor !== undefined && (
            <p class="quiet">
              There are more: <code>stdio-bus token ls</code> lists them all.
            </p>
          )}
        </section>
      )}
      {leaving !== undefined && (
        <Confirm
          title={`Revoke ${shown(leaving)}?`}
          verb="Revoke"
          act={async () => {
            await ask(`access/${encodeURIComponent(leaving)}`, { method: 'DELETE' })
            again()
          }}
          close={() => setLeaving(undefined)}
        >
          <p>
            It is taken out of the access file with all its tokens. Its connections end within a second, and what they
            wait for is answered with an error.
          </p>
        </Confirm>
      )}
    </>
  )
}

function Principals({
  items,
  revoke,
}: {
  readonly items: readonly Principal[]
  readonly revoke: (name: string) => void
}) {
  const isAdmin = may('admin')
  return (
    <table class="cards" aria-label="Principals">
      <thead>
        <tr>
          {COLUMNS.map((title) => (
            <th key={title} scope="col">
              {title}
            </th>
          ))}
          {isAdmin && (
            <th scope="col">
              <span class="sr-only">Actions</span>
            </th>
          )}
        </tr>
      </thead>
      <tbody>
        {items.map((principal) => (
          <tr key={principal.name}>
            <Cells principal={principal} />
            {isAdmin && (
              <td>
                {principal.is_listed && (
                  <button
                    type="button"
                    class="small"
                    aria-label={`Revoke ${shown(principal.name)}`}
                    onClick={() => revoke(principal.name)}
                  >
                    Revoke
                  </button>
                )}
              </td>
            )}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function Cells({ principal }: { readonly principal: Principal }) {
  const { name, role, pools, tokens, via, connections, pending, refused, last_seen: seen } = principal
  return (
    <>
      <td data-title="Name">
        <strong>{shown(name)}</strong>
      </td>
      <td data-title="Role">{role ?? '–'}</td>
      <td data-title="Pools">{pools === null ? '–' : pools.map(shown).join(', ') || 'none'}</td>
      <td data-title="Tokens">{tokens.length === 0 ? '–' : tokens.map(endOf)}</td>
      <td data-title="Via">{via ?? '–'}</td>
      <td data-title="Connections" class="figure">
        {count(connections)}
      </td>
      <td data-title="Pending" class="figure">
        {count(pending)}
      </td>
      <td data-title="Refused" class={refused > 0 ? 'figure warn' : 'figure'}>
        {count(refused)}
      </td>
      <td data-title="Last seen">
        {connections > 0 ? 'now' : seen === null ? '–' : <time dateTime={seen}>{clock(seen)}</time>}
      </td>
    </>
  )
}

/** Told by more than colour where it has ended or is about to. */
function endOf({ expires }: Principal['tokens'][number], index: number) {
  if (expires === null) return <div key={index}>for ever</div>
  const leftMs = Date.parse(expires) - Date.now()
  const state = leftMs <= 0 ? 'ended' : leftMs < SOON_MS ? 'ends soon' : 'until'
  return (
    <div key={index} class={leftMs <= 0 ? 'bad' : leftMs < SOON_MS ? 'warn' : ''}>
      {state} <time dateTime={expires}>{expires.slice(0, 10)}</time>
    </div>
  )
}
