/**
 * Writes the type of the configuration object from its JSON Schema, so that whoever embeds a bus needs no schema library
 * for our declarations.
 */
import { writeFileSync } from 'node:fs'

export function writeConfigType(root, schema) {
  const head = '/** The configuration as an object: what the file holds. Made from the JSON Schema. */'
  writeFileSync(`${root}/dist/embed/config-object.d.ts`, `${head}\nexport type ConfigObject = ${typeOf(schema, '')}\n`)
}

const PLAIN = { string: 'string', number: 'number', integer: 'number', boolean: 'boolean', null: 'null' }

function typeOf(node, indent) {
  if (node.anyOf) return node.anyOf.map((each) => typeOf(each, indent)).join(' | ')
  if ('const' in node) return JSON.stringify(node.const)
  if (node.enum) return node.enum.map((value) => JSON.stringify(value)).join(' | ')
  if (node.type === 'array') return `readonly (${typeOf(node.items ?? {}, indent)})[]`
  if (node.type === 'object') return objectType(node, indent)
  if (node.type === undefined) return 'unknown'
  const plain = PLAIN[node.type]
  if (plain === undefined) throw new Error(`the schema has a type that this script does not know: ${node.type}`)
  return plain
}

function objectType({ properties, required = [], additionalProperties }, indent) {
  if (properties === undefined) return `{ readonly [name: string]: ${typeOf(additionalProperties ?? {}, indent)} }`
  const deeper = `${indent}  `
  const lines = Object.entries(properties).flatMap(([name, node]) => {
    const comment =
      node.description === undefined ? [] : [`${deeper}/** ${node.description.replaceAll('*/', '* /')} */`]
    const key = /^[A-Za-z_]\w*$/.test(name) ? name : JSON.stringify(name)
    return [...comment, `${deeper}readonly ${key}${required.includes(name) ? '' : '?'}: ${typeOf(node, deeper)}`]
  })
  return `{\n${lines.join('\n')}\n${indent}}`
}
