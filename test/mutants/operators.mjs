/**
 * Small breakages of a source file, found in its syntax tree: a condition negated, a bound moved by one, a statement
 * dropped, a function left at once, `&&` for `||`, a number off by one, `true` for `false`.
 *
 * Types, imports and comments are left alone, and so is what only writes to the log: nothing hangs on it.
 */
import { parseAst } from 'rolldown/parseAst'

const BOUNDS = { '<': '<=', '<=': '<', '>': '>=', '>=': '>' }
const OPPOSITES = { '===': '!==', '!==': '===', '&&': '||', '||': '&&', '+=': '-=', '-=': '+=', '++': '--', '--': '++' }
/** Of nodes that TypeScript adds, those that hold an expression. */
const TRANSPARENT = new Set(['TSAsExpression', 'TSNonNullExpression', 'TSSatisfiesExpression'])
const TESTED = new Set(['IfStatement', 'WhileStatement', 'ForStatement', 'ConditionalExpression'])
const MAX_OFF_BY_ONE = 4_096

/** Every mutation of `text`: where it stands, what comes in its place, which operator made it. */
export function mutationsIn(text, file) {
  const found = []
  const add = (operator, { start, end }, replacement) =>
    found.push({ file, operator, start, end, replacement, line: text.slice(0, start).split('\n').length })
  visit(parseAst(text, { lang: 'ts', sourceType: 'module' }, file), undefined, (node, parent) =>
    mutate(node, parent, text, add),
  )
  return found
}

function visit(node, parent, see) {
  if (Array.isArray(node)) return node.forEach((each) => void visit(each, parent, see))
  if (node === null || typeof node !== 'object' || typeof node.type !== 'string') return
  if (node.type === 'ImportDeclaration' || (node.type.startsWith('TS') && !TRANSPARENT.has(node.type))) return
  see(node, parent)
  for (const [key, value] of Object.entries(node))
    if (typeof value === 'object' && key !== 'typeAnnotation') visit(value, node, see)
}

function mutate(node, parent, text, add) {
  const source = ({ start, end }) => text.slice(start, end)
  if (TESTED.has(node.type) && node.test) add('condition negated', node.test, `!(${source(node.test)})`)
  if (node.type === 'BinaryExpression' || node.type === 'LogicalExpression') mutateOperator(node, parent, text, add)
  if (node.type === 'AssignmentExpression' && OPPOSITES[node.operator] !== undefined)
    add('sum turned', node, `${source(node.left)} ${OPPOSITES[node.operator]} ${source(node.right)}`)
  if (node.type === 'UpdateExpression')
    add('count turned', node, source(node).replace(node.operator, OPPOSITES[node.operator]))
  if (node.type === 'ExpressionStatement' && !isLog(node.expression) && !isSuper(node.expression))
    add(node.expression.type === 'CallExpression' ? 'call removed' : 'statement dropped', node, '{}')
  if (node.type === 'Literal') mutateLiteral(node, parent, add)
  if (isProcedure(node))
    add('left at once', { start: node.body.start + 1, end: node.body.start + 1 }, ' if (true as boolean) return;')
}

function mutateOperator(node, parent, text, add) {
  const between = { start: node.left.end, end: node.right.start }
  const swap = (operator) => text.slice(between.start, between.end).replace(node.operator, () => operator)
  if (BOUNDS[node.operator] !== undefined) add('bound moved', between, swap(BOUNDS[node.operator]))
  else if (node.type === 'LogicalExpression' && OPPOSITES[node.operator] !== undefined)
    add(
      'and for or',
      node,
      `(${text.slice(node.start, node.left.end)}${swap(OPPOSITES[node.operator])}${text.slice(node.right.start, node.end)})`,
    )
  // As the whole of a condition it is negated already.
  else if (OPPOSITES[node.operator] !== undefined && !(TESTED.has(parent?.type) && parent.test === node))
    add('equality turned', between, swap(OPPOSITES[node.operator]))
}

function mutateLiteral(node, parent, add) {
  if (typeof node.value === 'boolean') add('truth turned', node, String(!node.value))
  const isCounted = parent?.type === 'BinaryExpression' || parent?.type === 'AssignmentExpression'
  if (typeof node.value === 'number' && isCounted && node.value <= MAX_OFF_BY_ONE)
    add('off by one', node, String(node.value + 1))
}

/** A function that gives nothing back and does more than one thing. */
function isProcedure(node) {
  if (node.type !== 'FunctionExpression' && node.type !== 'FunctionDeclaration') return false
  return node.returnType?.typeAnnotation?.type === 'TSVoidKeyword' && node.body !== null && node.body.body.length > 1
}

function isLog(expression) {
  const name = expression.callee?.property?.name
  return expression.type === 'CallExpression' && name === 'log'
}

function isSuper(expression) {
  return expression.type === 'CallExpression' && expression.callee.type === 'Super'
}
