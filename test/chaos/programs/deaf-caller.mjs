/**
 * An agent that answers its first call with a flood of calls to another agent and reads nothing from then on: what it is
 * answered waits in the bus. It stops writing while the bus does not read.
 */
const CALLS = 200_000
const PER_WRITE = 100
const ANSWER_BYTES = 2_000

let asked = 0

function flood() {
  while (asked < CALLS) {
    let text = ''
    for (const end = asked + PER_WRITE; asked < end; )
      text += `{"jsonrpc":"2.0","id":${++asked},"method":"agent::work","params":{"answerBytes":${ANSWER_BYTES}}}\n`
    if (!process.stdout.write(text)) return process.stdout.once('drain', flood)
  }
}

process.stdin.once('data', () => {
  process.stdin.pause()
  flood()
})
