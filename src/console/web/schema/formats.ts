/** Formats of strings that are checked before they are sent: each expression looks at a character once. */
const DATE = /^(\d{4})-(\d{2})-(\d{2})$/
const TIME = /^([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d{1,9})?([zZ]|[+-]\d{2}:\d{2})$/
const HOST = /^(?=.{1,253}$)[A-Za-z0-9]([A-Za-z0-9-]{0,62})(\.[A-Za-z0-9]([A-Za-z0-9-]{0,62})){0,126}$/

interface Format {
  readonly fits: (text: string) => boolean
  readonly example: string
}

const FORMATS: Readonly<Record<string, Format>> = {
  date: { fits: isDate, example: '2026-01-31' },
  time: { fits: (text) => TIME.test(text), example: '12:00:00Z' },
  'date-time': {
    fits: (text) => isDate(text.slice(0, 10)) && /[Tt ]/.test(text.charAt(10)) && TIME.test(text.slice(11)),
    example: '2026-01-31T12:00:00Z',
  },
  email: { fits: (text) => /^[^\s@]{1,64}@[^\s@]{1,253}$/.test(text), example: 'name@example.com' },
  uri: { fits: (text) => /^[A-Za-z][A-Za-z0-9+.-]*:\S*$/.test(text), example: 'https://example.com/' },
  uuid: {
    fits: (text) => /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/i.test(text),
    example: '123e4567-e89b-12d3-a456-426614174000',
  },
  hostname: { fits: (text) => HOST.test(text), example: 'example.com' },
  ipv4: {
    fits: (text) => /^(\d{1,3}\.){3}\d{1,3}$/.test(text) && text.split('.').every((part) => Number(part) <= 255),
    example: '192.0.2.1',
  },
}

/** undefined: a format that is not known here, and that everything fits. */
export function formatOf(name: unknown): Format | undefined {
  return typeof name === 'string' && Object.hasOwn(FORMATS, name) ? FORMATS[name] : undefined
}

function isDate(text: string): boolean {
  const found = DATE.exec(text)
  if (found === null) return false
  const [year, month, day] = [Number(found[1]), Number(found[2]), Number(found[3])]
  const date = new Date(Date.UTC(2000, month - 1, day))
  date.setUTCFullYear(year, month - 1, day)
  return date.getUTCMonth() === month - 1 && date.getUTCDate() === day
}
