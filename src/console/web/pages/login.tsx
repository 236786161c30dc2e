/** Logging in by a code or a token; a code in the fragment is used at once, and is in no log (contract 15.2, 15.3). */
import { useEffect, useRef, useState } from 'preact/hooks'
import { ApiFailure, ask, type Me, me } from '../api.ts'
import { go, parts } from '../router.ts'

/** Of what was entered: a whole link is as good as the code in it. */
function codeOf(entered: string): string {
  return /^https?:\/\/\S*#code=([\w-]+)$/.exec(entered)?.[1] ?? entered
}

export function Login() {
  const [code, setCode] = useState('')
  const [problem, setProblem] = useState<string>()
  const [isBusy, setBusy] = useState(false)
  const field = useRef<HTMLInputElement>(null)

  const logIn = async (shown: string): Promise<void> => {
    setBusy(true)
    setProblem(undefined)
    try {
      me.value = await ask<Me>('login', { body: { code: shown } })
      // Whoever was somewhere before comes back to where it was.
      if (parts.value[0] === 'login') go('', { replace: true })
    } catch (error) {
      setProblem(error instanceof ApiFailure ? error.message : String(error))
      setBusy(false)
      field.current?.focus()
    }
  }

  useEffect(() => {
    const given = /^#code=([\w-]+)$/.exec(location.hash)?.[1]
    if (given === undefined) return field.current?.focus()
    history.replaceState(null, '', location.pathname)
    void logIn(given)
  }, [])

  return (
    <main class="alone">
      <form
        class="card login"
        onSubmit={(event) => {
          event.preventDefault()
          void logIn(codeOf(code.trim()))
        }}
      >
        <img src="/console/assets/icon.svg" alt="" width="40" height="40" />
        <h1>Log in</h1>
        <p class="quiet">
          Run <code>stdio-bus console</code> where the bus runs and open what it prints, or enter its code or a token
          here.
        </p>
        <label>
          Code
          <input
            ref={field}
            name="code"
            value={code}
            autocomplete="off"
            spellcheck={false}
            aria-invalid={problem !== undefined}
            aria-describedby={problem === undefined ? undefined : 'login-problem'}
            onInput={(event) => setCode(event.currentTarget.value)}
          />
        </label>
        {problem !== undefined && (
          <p id="login-problem" class="problem" role="alert">
            {problem}
          </p>
        )}
        <button type="submit" class="primary" disabled={isBusy || code.trim() === ''}>
          {isBusy ? 'Logging in …' : 'Log in'}
        </button>
      </form>
    </main>
  )
}
