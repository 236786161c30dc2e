/** What a server wants to know before it goes on, as a form; or a page it wants somebody to open (contract 15.10). */
import { useState } from 'preact/hooks'
import { isObject, type Properties } from '../schema/value.ts'
import { brief, shown } from '../text.ts'
import { Link } from '../transcript/markdown.tsx'
import type { OpenQuestion } from './connection.ts'
import { Form } from './form.tsx'
import { emptyForm, problemsOf } from './form-state.ts'

export function ServerQuestion({ question: { params, answer } }: { readonly question: OpenQuestion }) {
  const isPage = params['mode'] === 'url'
  const schema = isPage ? undefined : params['requestedSchema']
  const [form, setForm] = useState(() => emptyForm(isObject(schema) ? schema : { type: 'object', properties: {} }))
  const [isJsonShown, setJsonShown] = useState(false)
  const accept = (event: Event): void => {
    event.preventDefault()
    if (problemsOf(form).length > 0) return setForm({ ...form, isTried: true })
    answer({ action: 'accept', ...(!isPage && { content: form.value as Properties }) })
  }
  return (
    <section class="card server-question" aria-label="The server asks">
      <p class="server-question-title">
        <span class="question-mark" aria-hidden="true">
          ?
        </span>{' '}
        <strong>The server asks</strong>
      </p>
      <p class="prewrapped">{shown(params['message']).slice(0, 4_000)}</p>
      <form onSubmit={accept} noValidate>
        {isPage ? (
          <p>
            <Link label="Open the page" target={brief(params['url'], 2_000)} />
          </p>
        ) : (
          <Form state={form} change={setForm} isJsonShown={isJsonShown} />
        )}
        <div class="row acts">
          <button type="submit" class="primary">
            Accept
          </button>
          <button type="button" onClick={() => answer({ action: 'decline' })}>
            Decline
          </button>
          {!isPage && (
            <button type="button" aria-pressed={isJsonShown} onClick={() => setJsonShown(!isJsonShown)}>
              As JSON
            </button>
          )}
        </div>
      </form>
      <p class="quiet">Only answer what you would tell this server: it is not the bus that asks.</p>
    </section>
  )
}
