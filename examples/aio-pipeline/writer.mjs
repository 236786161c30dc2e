/**
 * The stdio agent of the pipeline: it looks up a fact for each word it is given, has the text reviewed, and answers.
 *
 * To call another agent it makes a request of its own, as a client would. It says nothing about traces: the bus knows
 * which call it is busy with.
 */
import { startWorker } from 'stdio-bus/worker'

const worker = startWorker({
  async 'writer::input'({ inputs }) {
    const facts = await Promise.all(
      inputs.map(({ value }) => worker.request('library::tools.call', { tool: 'look_up', args: { animal: value } })),
    )
    const text = facts.map(({ outputs }) => outputs[0].value).join(' ')
    const review = await worker.request('reviewer::input', { inputs: [{ type: 'text', value: text }] })
    return { outputs: [{ type: 'text', value: text }, ...review.outputs] }
  },
})
