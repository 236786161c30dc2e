/**
 * Programs with a model in them, used as people use them, with the aggregate as their one MCP server (contract 13): the Gemini CLI and
 * opencode connect to it, and opencode has a tool called by a model that is an endpoint on this machine.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'

const SAID = 'said-by-a-host'
/** The tool as opencode names it: server, then listed name. */
const TOOL = 'all_everything_echo'

export async function runHosts({ folder, connectTo, runProgram, check }) {
  const [command, ...args] = connectTo('all')
  mkdirSync(join(folder, '.gemini'), { recursive: true })
  const gemini = { mcpServers: { all: { command, args, trust: true } }, security: { folderTrust: { enabled: false } } }
  writeFileSync(join(folder, '.gemini/settings.json'), JSON.stringify(gemini))
  const listed = await runProgram('gemini', ['mcp', 'list'])
  check('gemini: the aggregate is connected', /all: .*Connected/.test(`${listed.stdout}${listed.stderr}`), listed)
  const model = await startModel()
  try {
    writeFileSync(join(folder, 'opencode.json'), JSON.stringify(opencodeConfig([command, ...args], model.url)))
    const seen = await runProgram('opencode', ['mcp', 'list'])
    check('opencode: the aggregate is connected', /all .*connected/.test(`${seen.stdout}${seen.stderr}`), seen)
    const told = await runProgram('opencode', ['run', '--model', 'local/model', 'Echo something.'])
    check('opencode: the model was offered the tools of all members', model.offered.has('all_files_read_text_file'), {
      offered: [...model.offered],
    })
    check('opencode: a tool that the model called was run', model.heard.includes(`Echo: ${SAID}`), {
      heard: model.heard,
      ...told,
    })
  } finally {
    model.stop()
  }
}

const opencodeConfig = (command, baseURL) => ({
  mcp: { all: { type: 'local', command, enabled: true } },
  provider: {
    local: {
      npm: '@ai-sdk/openai-compatible',
      name: 'local',
      options: { baseURL, apiKey: 'none' },
      models: { model: { name: 'model', tool_call: true } },
    },
  },
})

/** A model that calls the tool once, and then says what came of it. */
async function startModel() {
  const offered = new Set()
  let heard = ''
  const server = createServer(async (request, response) => {
    const { messages = [], tools = [] } = JSON.parse((await text(request)) || '{}')
    for (const { function: tool } of tools) offered.add(tool.name)
    const result = messages.findLast(({ role }) => role === 'tool')
    if (result !== undefined) heard += JSON.stringify(result.content)
    const call = {
      index: 0,
      id: 'call_1',
      type: 'function',
      function: { name: TOOL, arguments: `{"message":"${SAID}"}` },
    }
    const mayCall = result === undefined && offered.has(TOOL) && tools.length > 0
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const say = (delta, finish_reason = null) =>
      response.write(
        `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'model', choices: [{ index: 0, delta, finish_reason }] })}\n\n`,
      )
    say(mayCall ? { role: 'assistant', tool_calls: [call] } : { role: 'assistant', content: 'It is done.' })
    say({}, mayCall ? 'tool_calls' : 'stop')
    response.end('data: [DONE]\n\n')
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${server.address().port}/v1`,
    offered,
    get heard() {
      return heard
    },
    stop: () => server.close(),
  }
}
