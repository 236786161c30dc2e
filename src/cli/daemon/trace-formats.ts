/** How a trace is given away by the console: for AIO, for OpenTelemetry, and as a drawing (contract 15.9). */
import type { TraceQuery } from '../../console/api/port.ts'
import type { TraceFormat } from '../../console/api/trace-routes.ts'
import { type Ask, askWholeExport, askWholeTrace } from '../../trace/queries.ts'
import { renderSvg } from '../../trace/render-svg.ts'

const exported =
  (format: string) =>
  async (ask: TraceQuery, id: string): Promise<string> =>
    JSON.stringify(await askWholeExport(ask as Ask, id, format))

export const TRACE_FORMATS: Readonly<Record<string, TraceFormat>> = {
  aio: { type: 'application/json', ending: 'json', write: exported('aio') },
  otlp: { type: 'application/json', ending: 'otlp.json', write: exported('otlp-json') },
  svg: {
    type: 'image/svg+xml',
    ending: 'svg',
    write: async (ask, id) => renderSvg(await askWholeTrace(ask as Ask, id)),
  },
}
