/** Many nodes on NATS, as data; an id begins with its clause of `docs/spec.md`. */
export const CLUSTER = {
  '14.1-mistakes': 'mistakes in cluster, and files that cannot be used, are exit 2; pools may be empty beside it only',
  '14.1-nats-away': 'without NATS at its start a node warns, serves its own clients and joins later',
  '14.1-name-taken': 'a node whose name a living one has exits 1 naming it, and that one notices nothing',
  '14.2-reach': 'a client at any node reaches any exported pool by its name',
  '14.2-export-import':
    'what is not exported or not imported does not exist elsewhere; reload takes both up and nothing else',
  '14.2-own-first': 'an own pool of that name comes first',
  '14.2-at-node': 'POOL@NODE means the pool of that node',
  '14.2-all-doors': 'what is imported is at all doors: an MCP server of another node at the web door',
  '14.3-choice': 'the node with the least to do for each ready worker takes a newcomer',
  '14.3-stays': 'a connection stays with its node',
  '14.4-bytes': 'lines arrive at the other node byte for byte',
  '14.4-once': 'every request is answered exactly once, at the client that asked',
  '14.4-questions': 'questions of a worker reach the client of another node, and its answers the worker',
  '14.4-dialects': "ACP and MCP are spoken across nodes, and sessions are one client's",
  '14.5-large-lines': 'a line far larger than message, window and share passes whole',
  '14.5-credit': 'a client that does not read holds up its own stream only, and memory stays bounded',
  '14.5-epochs': 'who was given up finds a new epoch: nothing of the older one is believed',
  '14.6-home': 'load finds the node where its session lives, from every node, and the session stays there',
  '14.6-attach':
    'attach, detach and end reach a kept session at its node, which judges; strangers hear of none, and a home that is away is node_lost',
  '14.6-home-away': 'a session whose home is away is node_lost with data.node, and no other node is tried',
  '14.6-portable': 'of a portable pool it is loaded elsewhere',
  '14.6-unavailable':
    'a directory that does not answer within a second is directory_unavailable, and nothing else notices',
  '14.6-no-jetstream': 'without JetStream, which is said, load goes by 14.3',
  '14.6-domain': 'behind leaf servers the directory is that of js_domain',
  '14.6-list':
    'session/list and bus::sessions.list ask all nodes of the pool for a second, and _meta names the silent ones',
  '14.6-copies': 'the directory has three copies where there are three servers, and outlives one of them',
  '14.6-forget': 'cluster forget drops the pointers of a node',
  '14.7-lost': 'what the workers of a lost node owe is answered node_lost with data.node, once',
  '14.7-new-requests': 'new requests for what only a lost node had are node_lost',
  '14.7-back': 'a lost node that is there again is found again',
  '14.7-clients': 'the clients of a lost node are gone for the workers of others',
  '14.7-frozen': 'a node that wakes up is back by itself, and its late answers reach nobody',
  '14.7-leaving':
    'a node that is told to go delivers what is owed and exits 0; others choose another or say shutting_down',
  '14.8-short-break': 'a break of NATS below lost_after_ms loses, doubles and fails nothing',
  '14.8-failover': 'a server of several that goes is replaced by another, and nothing is lost',
  '14.8-long-break': 'a longer one loses all other nodes, and is over soon after NATS is back',
  '14.8-cut': 'a cut network is two clusters, each of which serves its own, until it heals',
  '14.9-permissions':
    'with what cluster permissions prints a node works, and can neither speak as another nor listen to others',
  '14.9-check': 'check tries to speak as somebody else and warns if it could',
  '14.9-principal':
    'the principal goes along, never as more than a user; local has the name of its node, or the one that is given',
  '14.9-narrowed':
    'an entry of the name at the far node narrows and gives env; the far audit names principal, door and node',
  '14.9-bounds': 'no more streams are taken than clients may be there',
  '14.9-hostile': 'what does not parse is dropped and counted by sender; nobody ends, nothing grows',
  '14.10-status': 'status --cluster tells the nodes, their state, their streams and their pools',
  '14.10-agents': 'an agent of another node is called by its name from every node, at its own gateway',
  '14.10-agents-call':
    'an agent calls agents of other nodes: their node records the call below its parent, and chains across nodes reach their bound',
  '14.10-trace':
    'a trace is asked together from living nodes, the same from all of them, and missing_nodes names who was silent',
  '14.10-export': 'bus::traces.get, traces.export and its OTLP are those of all nodes, the same from each',
  '14.10-metrics': 'the figures of the cluster are among the metrics',
  '14.11-incompatible':
    'a node without a common version is incompatible, not imported and logged once; unknown fields are ignored',
  '14.12-demo': 'demo --cluster shows three nodes, a call across, a node killed and status --cluster',
  '14.12-no-server': 'without a nats-server demo --cluster is exit 1 and says what is wrong and how to get one',
  '14.14-simulation':
    'several kernels and a broker that misbehaves: one answer, right client, order, bounds, no ghosts',
} as const
