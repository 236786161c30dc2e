// What the official conformance suite expects a server to offer: tools, resources and prompts by their names.
import { createHmac, randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=='
const WAV = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA='

const text = (value) => ({ type: 'text', text: value })
const image = { type: 'image', data: PNG, mimeType: 'image/png' }
const resource = (uri, mimeType, value) => ({ type: 'resource', resource: { uri, mimeType, text: value } })
const said = (...content) => ({ content })

/** A request that the client is to answer before the tool can go on (2026-07-28). */
const elicit = (message, properties) => ({
  method: 'elicitation/create',
  params: { message, requestedSchema: { type: 'object', properties, required: Object.keys(properties) } },
})
const sample = (value, maxTokens) => ({
  method: 'sampling/createMessage',
  params: { messages: [{ role: 'user', content: text(value) }], maxTokens },
})
const ROOTS = { method: 'roots/list', params: {} }

const required = (inputRequests, requestState) => ({
  resultType: 'input_required',
  inputRequests,
  ...(requestState === undefined ? {} : { requestState }),
})

/** States are signed with a secret of this process: no other can read them. */
const SECRET = randomBytes(16)
const seal = (state) => `${state}.${createHmac('sha256', SECRET).update(state).digest('hex')}`
const opens = (sealed) => typeof sealed === 'string' && sealed === seal(sealed.split('.')[0])

/** Asks for all of `requests` until every one has an answer that is an object. */
function untilAnswered({ inputResponses, requestState }, requests, state, then) {
  if (requestState !== undefined && !opens(requestState)) throw { code: -32602, message: 'requestState is not ours' }
  const isAnswered = Object.keys(requests).every((key) => typeof inputResponses?.[key] === 'object')
  return isAnswered ? then(inputResponses) : required(requests, state === undefined ? undefined : seal(state))
}

const NAME = { name: { type: 'string' } }
const OK = { ok: { type: 'boolean' } }
const NO_ARGUMENTS = { type: 'object', properties: {} }
const withArgument = (name) => ({ type: 'object', properties: { [name]: { type: 'string' } }, required: [name] })

/** In what a client of this request can be asked; the requests of a table by the capability they need. */
const NEEDS = { 'sampling/createMessage': 'sampling', 'elicitation/create': 'elicitation', 'roots/list': 'roots' }

function changeList(which) {
  return () => {
    // Whatever instance is asked: all of them look at this file.
    writeFileSync(`changed-${which}`, String(Date.now()))
    return said(text('changed'))
  }
}

async function logThrice(_params, { log }) {
  for (const message of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
    log('info', message)
    await sleep(50)
  }
  return said(text('Logged three times.'))
}

async function reportProgress(_params, { progress }) {
  for (const done of [0, 50, 100]) {
    progress(done, 100)
    await sleep(50)
  }
  return said(text('Done.'))
}

async function elicitNow(params, { ask }, properties, prefix) {
  const { action, content } = await ask('elicitation/create', {
    message: params.arguments?.message ?? 'Please fill this in',
    requestedSchema: { type: 'object', properties, required: [] },
  })
  return said(text(`${prefix}: action=${action}, content=${JSON.stringify(content ?? {})}`))
}

const titled = (...names) => names.map((name, index) => ({ const: `value${index + 1}`, title: name }))
const OPTIONS = ['option1', 'option2', 'option3']
const ENUMS = {
  untitledSingle: { type: 'string', enum: OPTIONS },
  titledSingle: { type: 'string', oneOf: titled('First Option', 'Second Option', 'Third Option') },
  legacyEnum: {
    type: 'string',
    enum: ['opt1', 'opt2', 'opt3'],
    enumNames: ['Option One', 'Option Two', 'Option Three'],
  },
  untitledMulti: { type: 'array', items: { type: 'string', enum: OPTIONS } },
  titledMulti: { type: 'array', items: { anyOf: titled('First Choice', 'Second Choice', 'Third Choice') } },
}
const DEFAULTS = {
  name: { type: 'string', default: 'John Doe' },
  age: { type: 'integer', default: 30 },
  score: { type: 'number', default: 95.5 },
  status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
  verified: { type: 'boolean', default: true },
}

/** By name: what it needs, and what it does with `(params, session)`. */
export const TOOLS = {
  test_simple_text: { run: () => said(text('This is a simple text response for testing.')) },
  test_image_content: { run: () => said(image) },
  test_audio_content: { run: () => said({ type: 'audio', data: WAV, mimeType: 'audio/wav' }) },
  test_embedded_resource: {
    run: () => said(resource('test://embedded-resource', 'text/plain', 'This is an embedded resource content.')),
  },
  test_multiple_content_types: {
    run: () =>
      said(
        text('Multiple content types test:'),
        image,
        resource('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}'),
      ),
  },
  test_tool_with_logging: { run: logThrice },
  test_logging_tool: { run: logThrice },
  test_error_handling: {
    run: () => ({ isError: true, ...said(text('This tool intentionally returns an error for testing')) }),
  },
  test_tool_with_progress: { run: reportProgress },
  test_sampling: {
    schema: withArgument('prompt'),
    run: async (params, { ask }) => {
      const { content } = await ask(...Object.values(sample(params.arguments.prompt, 100)))
      return said(text(`LLM response: ${content?.text}`))
    },
  },
  test_elicitation: {
    schema: withArgument('message'),
    run: (params, session) =>
      elicitNow(params, session, { username: { type: 'string' }, email: { type: 'string' } }, 'User response'),
  },
  test_elicitation_sep1034_defaults: {
    run: (params, session) => elicitNow(params, session, DEFAULTS, 'Elicitation completed'),
  },
  test_elicitation_sep1330_enums: {
    run: (params, session) => elicitNow(params, session, ENUMS, 'Elicitation completed'),
  },
  test_missing_capability: {
    run: (_params, { capabilities }) => {
      if (capabilities.sampling !== undefined) return said(text('The client can be asked.'))
      throw { code: -32021, message: 'sampling is needed', data: { requiredCapabilities: { sampling: {} } } }
    },
  },
  test_streaming_elicitation: {
    run: (params, { progress }) => {
      progress(1, 2)
      return untilAnswered(params, { user_name: elicit('What is your name?', NAME) }, undefined, () => said(text('ok')))
    },
  },
  test_trigger_tool_change: { run: changeList('tools') },
  test_trigger_prompt_change: { run: changeList('prompts') },
  test_input_required_result_elicitation: {
    run: (params) =>
      untilAnswered(params, { user_name: elicit('What is your name?', NAME) }, undefined, ({ user_name }) =>
        said(text(`Hello, ${user_name.content?.name}!`)),
      ),
  },
  test_input_required_result_sampling: {
    run: (params) =>
      untilAnswered(params, { capital_question: sample('What is the capital of France?', 100) }, undefined, (answers) =>
        said(text(`It said: ${answers.capital_question.content?.text}`)),
      ),
  },
  test_input_required_result_list_roots: {
    run: (params) =>
      untilAnswered(params, { client_roots: ROOTS }, undefined, ({ client_roots }) =>
        said(text(`Roots: ${JSON.stringify(client_roots.roots)}`)),
      ),
  },
  test_input_required_result_request_state: {
    run: (params) =>
      untilAnswered(params, { confirm: elicit('Please confirm', OK) }, 'confirm', () => said(text('state-ok'))),
  },
  test_input_required_result_tampered_state: {
    run: (params) =>
      untilAnswered(params, { confirm: elicit('Please confirm', OK) }, 'tampered', () => said(text('state-ok'))),
  },
  test_input_required_result_multiple_inputs: {
    run: (params) => {
      const requests = {
        user_name: elicit('What is your name?', NAME),
        greeting: sample('Generate a greeting', 50),
        client_roots: ROOTS,
      }
      return untilAnswered(params, requests, 'several', () => said(text('All three are here.')))
    },
  },
  test_input_required_result_multi_round: {
    run: (params) => {
      const second = { step2: elicit('Step 2: What is your favorite color?', { color: { type: 'string' } }) }
      const first = { step1: elicit('Step 1: What is your name?', NAME) }
      if (params.inputResponses?.step2 !== undefined || params.requestState?.startsWith('round2.'))
        return untilAnswered(params, second, 'round2', () => said(text('Both rounds are done.')))
      return untilAnswered(params, first, 'round1', () => required(second, seal('round2')))
    },
  },
  test_input_required_result_capabilities: {
    run: (params, { capabilities }) => {
      const all = { who: elicit('Who?', NAME), what: sample('What?', 10), where: ROOTS }
      const able = Object.entries(all).filter(([, { method }]) => capabilities[NEEDS[method]] !== undefined)
      return untilAnswered(params, Object.fromEntries(able), undefined, () => said(text('Asked what can be asked.')))
    },
  },
}

export const TOOL_LIST = Object.entries(TOOLS).map(([name, { schema }]) => ({
  name,
  description: `For the conformance suite: ${name.replaceAll('_', ' ')}.`,
  inputSchema: schema ?? NO_ARGUMENTS,
}))

export const RESOURCES = {
  'test://static-text': { mimeType: 'text/plain', text: 'This is the content of the static text resource.' },
  'test://static-binary': { mimeType: 'image/png', blob: PNG },
  'test://watched-resource': { mimeType: 'text/plain', text: 'Watched.' },
}
export const RESOURCE_LIST = Object.entries(RESOURCES).map(([uri, { mimeType }]) => ({
  uri,
  name: uri.slice('test://'.length),
  description: 'For the conformance suite.',
  mimeType,
}))
export const TEMPLATES = [
  {
    uriTemplate: 'test://template/{id}/data',
    name: 'template',
    description: 'Data by id.',
    mimeType: 'application/json',
  },
]

export function readResource(uri) {
  if (Object.hasOwn(RESOURCES, uri)) return { uri, ...RESOURCES[uri] }
  const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1]
  if (id === undefined) throw { code: -32602, message: 'Resource not found', data: { uri } }
  const value = JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` })
  return { uri, mimeType: 'application/json', text: value }
}

const user = (content) => ({ role: 'user', content })
const argument = (name) => ({ name, description: `The ${name}.`, required: true })

export const PROMPTS = {
  test_simple_prompt: { run: () => ({ messages: [user(text('This is a simple prompt for testing.'))] }) },
  test_prompt_with_arguments: {
    arguments: [argument('arg1'), argument('arg2')],
    run: ({ arguments: { arg1, arg2 } }) => ({
      messages: [user(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`))],
    }),
  },
  test_prompt_with_embedded_resource: {
    arguments: [argument('resourceUri')],
    run: ({ arguments: { resourceUri } }) => ({
      messages: [
        user(resource(resourceUri, 'text/plain', 'Embedded resource content for testing.')),
        user(text('Please process the embedded resource above.')),
      ],
    }),
  },
  test_prompt_with_image: {
    run: () => ({ messages: [user(image), user(text('Please analyze the image above.'))] }),
  },
  test_input_required_result_prompt: {
    run: (params) => {
      const requests = { user_context: elicit('What context should the prompt use?', { context: { type: 'string' } }) }
      return untilAnswered(params, requests, undefined, ({ user_context }) => ({
        messages: [user(text(`Context: ${user_context.content?.context}`))],
      }))
    },
  },
}
export const PROMPT_LIST = Object.entries(PROMPTS).map(([name, { arguments: wanted }]) => ({
  name,
  description: `For the conformance suite: ${name.replaceAll('_', ' ')}.`,
  ...(wanted === undefined ? {} : { arguments: wanted }),
}))
