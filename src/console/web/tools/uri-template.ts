/** Templates of URIs (RFC 6570) with texts put in for their variables; a variable that is left out leaves no trace. */
import { own, type Properties } from '../schema/value.ts'

interface Operator {
  readonly first: string
  readonly between: string
  readonly isNamed: boolean
  readonly isEmptyNamed: string
  readonly keepsReserved: boolean
}

const plain = { isNamed: false, isEmptyNamed: '', keepsReserved: false }

const OPERATORS: Readonly<Record<string, Operator>> = {
  '': { ...plain, first: '', between: ',' },
  '+': { ...plain, first: '', between: ',', keepsReserved: true },
  '#': { ...plain, first: '#', between: ',', keepsReserved: true },
  '.': { ...plain, first: '.', between: '.' },
  '/': { ...plain, first: '/', between: '/' },
  ';': { ...plain, first: ';', between: ';', isNamed: true },
  '?': { ...plain, first: '?', between: '&', isNamed: true, isEmptyNamed: '=' },
  '&': { ...plain, first: '&', between: '&', isNamed: true, isEmptyNamed: '=' },
}

const EXPRESSION = /\{([+#./;?&]?)([^{}]{1,500})\}/g
const MAX_VARIABLES = 50

interface Variable {
  readonly name: string
  readonly most: number | undefined
}

export function variablesOf(template: string): string[] {
  const names = [...template.matchAll(EXPRESSION)].flatMap(([, , list]) => listOf(list!).map(({ name }) => name))
  return [...new Set(names)].slice(0, MAX_VARIABLES)
}

export function expandTemplate(template: string, values: Properties): string {
  return template.replace(EXPRESSION, (_all, sign: string, list: string) => {
    const operator = OPERATORS[sign]!
    const parts = listOf(list).flatMap(({ name, most }) => {
      const value = own(values, name)
      return typeof value === 'string' ? [partOf(operator, name, [...wellFormed(value)].slice(0, most).join(''))] : []
    })
    return parts.length === 0 ? '' : operator.first + parts.join(operator.between)
  })
}

function listOf(list: string): Variable[] {
  return list.split(',').map((spelt) => {
    const [, name, most] = /^(.*?)(?::(\d{1,4})|\*)?$/s.exec(spelt.trim())!
    return { name: name!, most: most === undefined ? undefined : Number(most) }
  })
}

function partOf({ isNamed, isEmptyNamed, keepsReserved }: Operator, name: string, text: string): string {
  const value = keepsReserved ? encodeURI(text).replace(/%25([\da-fA-F]{2})/g, '%$1') : encode(text)
  if (!isNamed) return value
  return value === '' ? name + isEmptyNamed : `${name}=${value}`
}

function encode(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)
}

/** Half a character can stand in no address. */
export function wellFormed(text: string): string {
  return text.replace(/\p{Cs}/gu, '\ufffd')
}
