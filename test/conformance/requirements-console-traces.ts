/** What clause 15.9 says of the page of traces, proved in a browser, and of the questions behind it. */
export const CONSOLE_TRACES = {
  '15.9-api': 'traces are found by every filter; one call is asked for alone; what was left off is counted',
  '15.9-rights': 'a user sees its own traces, by list, by address and by export',
  '15.9-list': 'newest first, live, with filters in the address; what is drawn is what is seen',
  '15.9-waterfall': 'calls as a tree on a time axis, by mouse and keyboard; errors are marked by more than colour',
  '15.9-graph':
    'a graph laid out off the main thread; wheel, drag, pinch, buttons and keys; many calls are grouped by agent',
  '15.9-call': 'payloads as stored, asked for call by call; redacted, cut and lost are said; the id is copied',
  '15.9-compare': 'two traces side by side, matched by agent, method and order; added, missing and slower are marked',
  '15.9-downloads': 'AIO, OTLP and SVG are links',
  '15.9-states': 'no traces, none that fit, none of that id and a failure each say what to do',
} as const
