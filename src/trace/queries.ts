/**
 * Questions to a store as somebody asks them who wants the whole document, however many answers it takes.
 *
 * What cannot be understood is a `QueryRefusal`, which carries the error to answer with.
 */
import type { TraceDocument } from './document.ts'
import type { OtlpDocument } from './export-otlp.ts'
import type { Answer, QueryMethod } from './query.ts'
import type { QueryFault } from './query-params.ts'

export class QueryRefusal extends Error {
  readonly fault: QueryFault
  readonly data: QueryFault['data']

  constructor(fault: QueryFault) {
    super(fault.message)
    this.fault = fault
    this.data = fault.data
  }
}

/** Anything that answers trace queries: a store, or a database file that is only read. */
export interface Askable {
  query(method: QueryMethod, params: unknown): Promise<Answer>
}

/** Puts one question and gives its answer; fails with what it is refused for. */
export type Ask = (method: 'get' | 'export', params: object) => Promise<unknown>

type Paged<Document> = Document & { next_cursor?: string }

/** A trace with all its calls. */
export function askWholeTrace(ask: Ask, traceId: string): Promise<TraceDocument> {
  return askAll<TraceDocument>(
    (page) => ask('get', { trace_id: traceId, ...page }),
    (whole, more) => appendTo(whole.calls, more.calls),
  )
}

/** A trace for other programs, with all its calls. */
export function askWholeExport(ask: Ask, traceId: string, format: string): Promise<object> {
  const question = (page: object) => ask('export', { trace_id: traceId, format, ...page })
  if (format === 'otlp-json') {
    return askAll<OtlpDocument>(question, (whole, more) => appendTo(spansOf(whole), spansOf(more)))
  }
  return askAll<TraceDocument>(question, (whole, more) => appendTo(whole.calls, more.calls))
}

async function askAll<Document>(
  ask: (page: { cursor?: string }) => Promise<unknown>,
  join: (whole: Document, more: Document) => void,
): Promise<Document> {
  const { next_cursor: second, ...first } = (await ask({})) as Paged<Document>
  const whole = first as Document
  for (let cursor = second; cursor !== undefined; ) {
    const page = (await ask({ cursor })) as Paged<Document>
    join(whole, page)
    cursor = page.next_cursor
  }
  return whole
}

/** Too many for the arguments of one `push`. */
function appendTo<T>(list: T[], more: readonly T[]): void {
  for (const item of more) list.push(item)
}

function spansOf({
  resourceSpans,
}: OtlpDocument): OtlpDocument['resourceSpans'][number]['scopeSpans'][number]['spans'] {
  return resourceSpans[0]!.scopeSpans[0]!.spans
}
