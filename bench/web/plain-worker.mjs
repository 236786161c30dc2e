/** Answers every line by its id, and everything that came together at once: what is measured is in front of it. */
let held = ''
process.stdin.setEncoding('latin1').on('data', (text) => {
  const lines = (held + text).split('\n')
  held = lines.pop()
  const answers = lines.map((line) => {
    const at = line.indexOf('"id":') + 5
    return `{"jsonrpc":"2.0","id":${line.slice(at, line.indexOf(',', at))},"result":{"ok":true}}\n`
  })
  if (answers.length > 0) process.stdout.write(answers.join(''))
})
