/** What holds and where it comes from, what `check` finds, and what a reload would change (contract 15.14). */
import { useState } from 'preact/hooks'
import { ApiFailure, ask, may } from '../api.ts'
import { useLoaded } from '../parts/loaded.tsx'
import { Empty, Failed, Loading } from '../parts/state.tsx'
import { query, setQuery } from '../router.ts'
import { shown } from '../text.ts'

interface Setting {
  readonly path: string
  readonly value: unknown
  readonly origin: string
}

interface View {
  readonly file: string
  readonly settings: readonly Setting[]
  readonly findings: readonly { readonly severity: string; readonly place: string; readonly text: string }[]
  readonly pending: { readonly changed: readonly string[]; readonly problem: string | null }
}

export function Configuration() {
  const { value, error, again } = useLoaded<View>('config')
  return (
    <>
      <h1>Configuration</h1>
      {value === undefined && error === undefined && <Loading what="the configuration" />}
      {error !== undefined && <Failed error={error} retry={again} />}
      {value !== undefined && (
        <>
          <Changes view={value} again={again} />
          <Findings findings={value.findings} />
          <Settings settings={value.settings} />
        </>
      )}
    </>
  )
}

function Changes({ view, again }: { readonly view: View; readonly again: () => void }) {
  const { file, pending } = view
  const [outcome, setOutcome] = useState<{ readonly isGood: boolean; readonly text: string }>()
  const [isBusy, setBusy] = useState(false)
  const reload = async (): Promise<void> => {
    setBusy(true)
    try {
      await ask('reload', { body: {} })
      setOutcome({ isGood: true, text: 'Reloaded: what the file says holds now.' })
    } catch (error) {
      const reason = error instanceof ApiFailure ? error.message : String(error)
      setOutcome({ isGood: false, text: `Not reloaded, the old configuration stays: ${reason}` })
    }
    setBusy(false)
    again()
  }
  return (
    <section class="card" aria-label="File">
      <div class="row">
        <code class="grow">{shown(file)}</code>
        <button type="button" onClick={again}>
          Look again
        </button>
        {may('admin') && (
          <button type="button" class={pending.changed.length > 0 ? 'primary' : ''} disabled={isBusy} onClick={reload}>
            {isBusy ? 'Reloading …' : 'Reload'}
          </button>
        )}
      </div>
      {pending.problem !== null && <p class="bad">✗ {shown(pending.problem)}</p>}
      {pending.changed.length > 0 && (
        <>
          <p class="warn">! The file has changed. A reload would change:</p>
          <ul>
            {pending.changed.map((change) => (
              <li key={change}>{shown(change)}</li>
            ))}
          </ul>
        </>
      )}
      {pending.changed.length === 0 && pending.problem === null && (
        <p class="quiet">The file is what the bus runs with: a reload would change nothing.</p>
      )}
      {outcome !== undefined && (
        <p class={outcome.isGood ? 'good' : 'bad prewrapped'} role="status">
          {shown(outcome.text)}
        </p>
      )}
    </section>
  )
}

function Findings({ findings }: { readonly findings: View['findings'] }) {
  return (
    <section class="card" aria-labelledby="findings-title">
      <h2 id="findings-title">Findings {findings.length > 0 && <span class="badge">{findings.length}</span>}</h2>
      {findings.length === 0 && <p class="good">✓ stdio-bus check finds nothing.</p>}
      <ul class="plain">
        {findings.map(({ severity, place, text }, index) => (
          <li key={index}>
            <span class={severity === 'error' ? 'bad' : 'warn'}>
              {severity === 'error' ? '✗' : '!'} {severity}
            </span>{' '}
            <code>{shown(place)}</code>: {shown(text)}
          </li>
        ))}
      </ul>
    </section>
  )
}

function Settings({ settings }: { readonly settings: readonly Setting[] }) {
  const text = query.value.get('text') ?? ''
  const isSetOnly = query.value.get('show') === 'set'
  const wanted = settings.filter(
    ({ path, value, origin }) =>
      (!isSetOnly || origin !== 'default') &&
      `${path} ${JSON.stringify(value)} ${origin}`.toLowerCase().includes(text.toLowerCase()),
  )
  return (
    <section class="card" aria-labelledby="settings-title">
      <h2 id="settings-title">Values</h2>
      <div class="row">
        <label class="inline grow">
          Filter{' '}
          <input
            data-filter
            type="text"
            value={text}
            onInput={(event) => setQuery({ text: event.currentTarget.value })}
          />
        </label>
        <label class="inline">
          Show{' '}
          <select
            value={isSetOnly ? 'set' : 'all'}
            onChange={(event) => setQuery({ show: event.currentTarget.value === 'set' ? 'set' : null })}
          >
            <option value="all">all</option>
            <option value="set">what is set</option>
          </select>
        </label>
      </div>
      {wanted.length === 0 ? (
        <Empty title="Nothing here">
          <p>{settings.length === 0 ? 'Mend the file first: see its findings.' : 'No value fits the filter.'}</p>
        </Empty>
      ) : (
        <table class="cards" aria-labelledby="settings-title">
          <thead>
            <tr>
              <th scope="col">Key</th>
              <th scope="col">Value</th>
              <th scope="col">Origin</th>
            </tr>
          </thead>
          <tbody>
            {wanted.map((setting) => (
              <tr key={setting.path} class={setting.origin === 'default' ? 'quiet' : ''}>
                <td data-title="Key">
                  <code>{shown(setting.path)}</code>
                </td>
                <td data-title="Value">
                  <code>{shown(JSON.stringify(setting.value))}</code>
                </td>
                <td data-title="Origin">{shown(setting.origin.replace(/^.*\//, ''))}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  )
}
