/**
 * Ends the groups of all workers when the bus itself is killed and can no longer do so (contract 5.4).
 *
 * One tiny shell process, in a session of its own, reads group numbers from a pipe that only the bus holds; when the pipe
 * ends, for whatever reason, it ends every group still listed. The number of a group is known only when its program runs
 * already; so before each start the warden hears of a mark that the new process will carry in its environment, and looks
 * for it should the bus be killed before it could tell the number. It is told nothing but numbers, and its script is
 * fixed. Should it die, another takes its place with the current list.
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import type { Writable } from 'node:stream'

/** The variable that tells the process of a worker from all others until its group is known. */
const MARK_NAME = 'STDIO_BUS_WORKER'
/** The same, written so that whoever looks for it does not find itself. */
const MARK_PATTERN = 'STDIO_BUS_WORKE[R]'

/**
 * A number that is no group of a worker is passed over: `kill -- -1` would be every process of the user. A process that is
 * between its fork and its program carries no mark yet, so it is looked for twice. Where processes have no files, `ps` is
 * asked for the variables of all: with the flag of macOS, or in the way of the old ones.
 */
const SCRIPT = `
trap '' HUP INT QUIT TERM
groups=' '
expected=
add() { case $1 in '' | 0* | 1 | *[!0-9]*) ;; *) groups="$groups$1 " ;; esac; }
find_expected() {
  [ -n "$expected" ] || return
  if [ ! -r /proc/self/environ ]; then
    for group in $( (ps -A -E -ww -o pgid= -o command= || ps axeww -o pgid= -o command=) 2>/dev/null |
      sed -n "s/^ *\\([0-9]*\\) .*${MARK_PATTERN}=$1-$expected-.*/\\1/p"); do add "$group"; done
    return
  fi
  for file in $(grep -ls -e "${MARK_NAME}=$1-$expected-" /proc/[0-9]*/environ); do
    read -r stat < "\${file%environ}stat" && set -- "$1" \${stat##*) } && add "$4"
  done
}
while IFS= read -r line; do
  group=\${line#?}
  case $line in
    +*) add "$group"; expected= ;;
    -*) case $groups in *" $group "*) groups="\${groups%%" $group "*} \${groups#*" $group "}" ;; esac ;;
    '?'*) expected=$group ;;
  esac
done
find_expected "$1"
[ "$groups$expected" = ' ' ] && exit 0
for group in $groups; do kill -s TERM -- "-$group"; done
sleep 1
find_expected "$1"
for group in $groups; do kill -s KILL -- "-$group"; done
`

const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 30_000
/** One that lived this long has not died of what killed the one before. */
const STABLE_MS = 60_000

export interface WardenOptions {
  readonly shell?: string
  /** Hears when the warden has died or cannot be started; the bus goes on, for that time unguarded. */
  readonly onTrouble?: (message: string) => void
}

type Shell = ChildProcessByStdio<Writable, null, null>

export class Warden {
  readonly #options: WardenOptions
  readonly #groups = new Set<number>()
  readonly #name = randomBytes(8).toString('hex')
  #marks = 0
  #shell: Shell | undefined
  #startedMs = 0
  #pauseMs = FIRST_PAUSE_MS
  #restart: NodeJS.Timeout | undefined
  #closed = false

  constructor(options: WardenOptions = {}) {
    this.#options = options
    this.#start()
  }

  /** The process that watches now; undefined between the death of one and the start of the next. */
  get pid(): number | undefined {
    return this.#shell?.pid
  }

  /** A process is about to be started, and `add` will tell its number: the variables to start it with. */
  expect(): Readonly<Record<string, string>> {
    const mark = ++this.#marks
    this.#shell?.stdin.write(`?${mark}\n`)
    return { [MARK_NAME]: `${this.#name}-${mark}-` }
  }

  add(pgid: number): void {
    this.#groups.add(pgid)
    this.#shell?.stdin.write(`+${pgid}\n`)
  }

  remove(pgid: number): void {
    if (this.#groups.delete(pgid)) this.#shell?.stdin.write(`-${pgid}\n`)
  }

  /** The bus stops: whatever group is still listed is ended by the warden, which then goes too. */
  close(): void {
    this.#closed = true
    clearTimeout(this.#restart)
    // Nobody is being started now, and a start that failed has left nobody to look for.
    this.#shell?.stdin.end('?\n')
  }

  #start(): void {
    this.#startedMs = performance.now()
    try {
      this.#adopt(this.#spawn())
    } catch (error) {
      this.#retry(`cannot be started (${error instanceof Error ? error.message : error})`)
    }
  }

  #spawn(): Shell {
    return spawn(this.#options.shell ?? '/bin/sh', ['-c', SCRIPT, 'stdio-bus-warden', this.#name], {
      cwd: '/',
      env: { PATH: `/usr/bin:/bin:${process.env['PATH'] ?? ''}` },
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
    })
  }

  #adopt(shell: Shell): void {
    shell.once('error', (error) => this.#retry(`cannot be started (${error.message})`))
    shell.once('exit', (code, signal) => this.#retry(`has died (${signal ?? `exit ${code}`})`))
    if (shell.pid === undefined) return
    this.#shell = shell
    shell.stdin.on('error', () => {})
    for (const pgid of this.#groups) shell.stdin.write(`+${pgid}\n`)
    // Neither may keep a bus alive that has nothing else to do.
    shell.unref()
    ;(shell.stdin as Socket).unref()
  }

  #retry(what: string): void {
    this.#shell = undefined
    if (this.#closed) return
    if (performance.now() - this.#startedMs > STABLE_MS) this.#pauseMs = FIRST_PAUSE_MS
    this.#restart = setTimeout(() => this.#start(), this.#pauseMs).unref()
    const unguarded = `the guard that ends the workers if the bus is killed ${what}`
    this.#options.onTrouble?.(`${unguarded}; it is started again in ${this.#pauseMs} ms`)
    this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS)
  }
}
