/** What a user of NATS must be allowed who is one node and nobody else, in the words of a server's configuration (contract 14.9). */
import { ALL, subjectOf } from './names.ts'

export interface PermissionsOf {
  readonly cluster: string
  readonly node: string
  readonly jsDomain?: string
}

/** Answers of the server to this node come here, and no other node may listen. */
export function inboxOf(node: string): string {
  return `_INBOX_${node}`
}

export function subjectsOf({ cluster, node, jsDomain }: PermissionsOf): { publish: string[]; subscribe: string[] } {
  const api = jsDomain === undefined ? '$JS.API' : `$JS.${jsDomain}.API`
  const bucket = `KV_bus_${cluster}`
  const keys = jsDomain === undefined ? `$KV.bus_${cluster}.>` : `${api}.$KV.bus_${cluster}.>`
  const directory = [
    `${api}.INFO`,
    `${api}.STREAM.INFO.${bucket}`,
    `${api}.STREAM.CREATE.${bucket}`,
    `${api}.DIRECT.GET.${bucket}.>`,
    `${api}.STREAM.MSG.GET.${bucket}`,
    `${api}.CONSUMER.*.${bucket}`,
    `${api}.CONSUMER.*.${bucket}.>`,
    keys,
  ]
  return {
    publish: [subjectOf(cluster, '*', node), ...directory],
    subscribe: [subjectOf(cluster, node, '*'), subjectOf(cluster, ALL, '*'), `${inboxOf(node)}.>`],
  }
}

export function permissionsBlock(of: PermissionsOf): string {
  const { publish, subscribe } = subjectsOf(of)
  const list = (subjects: readonly string[]): string =>
    subjects.map((subject) => `      ${JSON.stringify(subject)}`).join('\n')
  return `{
  user: ${JSON.stringify(of.node)}
  password: "..."
  permissions: {
    publish: { allow: [
${list(publish)}
    ] }
    subscribe: { allow: [
${list(subscribe)}
    ] }
  }
}
`
}
