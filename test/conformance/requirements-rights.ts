/** What a principal may do and what is left of it (clause 9), as data; an id begins with its clause of `docs/spec.md`. */
export const RIGHTS = {
  '9.6-traces': 'a user sees traces that are all its own, an observer those of its pools, whatever they ask for',

  '9.18-agents': 'an agent that a principal may not use is not_allowed, existing or not',
  '9.18-named': 'help, agents.list and errors name allowed agents only',
  '9.18-in-turn': 'what agents call in turn is not judged again and keeps its caller',

  '9.19-aio': 'with rules for tools, calls of agents are judged by their tool or method; help and lists are free',
  '9.19-twice': 'a call that names its tool twice is refused',

  '9.20-aio': 'tools.list of an agent loses hidden tools, in the trace too; no list is bad_list',
  '9.20-help': 'help of an agent loses hidden tools and methods, remembered or not',
  '9.20-hidden': "hidden tools are taken out of the answer to tools/list, wherever they stand, and no other tool's",
  '9.20-bytes': 'every other byte of the list stays as it was',
  '9.20-nameless': 'an entry whose name is missing, twice or no string is hidden',
  '9.20-cache-scope': 'cacheScope public becomes private',
  '9.20-bad-list': 'where a list must be and there is none, or there are two, it is a bad_list',

  '9.22-isolated':
    "isolated workers of a principal are fresh, have its variables over the pool's, and no other's have them",
  '9.22-openai':
    'workers of the OpenAI agent: one per principal with variables, within max_instances, ended with its last client',
  '9.22-pool': 'variables under the id of a pool are for that pool only',
  '9.22-calls': 'a call of an agent goes to a worker with the variables of its caller',
  '9.22-changed':
    'a worker that dies is followed by one with its variables; a changed file is for workers that start later',

  '9.23-keys': 'an audit line has every key, in order',
  '9.23-cut': 'texts of an audit line are cut at 256, and nothing in them breaks it',
  '9.23-mode': "the audit log is its owner's alone (0600) and is appended to",
  '9.23-device': 'the audit log can be a device',
  '9.23-reopened': 'the audit log is opened anew on reload and SIGHUP, and loses nothing by it',
  '9.23-waits': 'while it cannot be written 1 MiB waits, then lines are lost, counted and logged',
  '9.23-gap': 'a gap says how many lines were lost, in their place',
  '9.23-required': 'a required audit log that cannot be written lets no request go on',

  '9.24-caller': 'a trace says of every call who made it, and is found by the principal',
  '9.24-calls': 'what an agent calls in turn keeps the principal of the call at the root',
  '9.24-traffic': 'so does what an agent does for a request that passes through',
  '9.24-otlp': 'exported spans name the principal',
  '9.24-migration': 'a store of an earlier version keeps its calls and takes callers',

  '9.26-env':
    'no value of env is in an argument list, a log, the status, the audit, a trace or a recording: only in its worker',
} as const
