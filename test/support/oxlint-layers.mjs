// The layer rule of design.md as a rule of oxlint: imports point towards core. One table says which folder of src/ may import
// from which, and what besides; static, dynamic and type imports are all looked at, by the path they resolve to.
import { dirname, resolve, sep } from 'node:path'

const ANY_NODE = /^node:/
const NONE = /(?!)/

/**
 * own: other layers it may import from. packages: npm packages. node: Node's modules. A connector may not import from another
 * connector, and only registry.ts may name one: that is `apart`.
 */
const LAYERS = {
  core: { own: [], packages: NONE, node: /^node:timers\/promises$/ },
  engine: { own: ['core'], packages: NONE, node: ANY_NODE },
  aws: { own: ['core'], packages: /./, node: ANY_NODE },
  stores: { own: ['core', 'aws'], packages: /./, node: ANY_NODE },
  compression: { own: ['core'], packages: /./, node: ANY_NODE },
  formats: { own: ['core'], packages: /./, node: ANY_NODE },
  connectors: {
    own: ['core', 'aws', 'stores', 'compression', 'formats'],
    packages: /./,
    node: ANY_NODE,
    apart: 'registry.ts',
  },
  cluster: { own: ['core', 'engine', 'connectors', 'aws', 'api'], packages: /./, node: ANY_NODE },
  server: { own: ['core', 'cluster', 'index.ts'], packages: /./, node: ANY_NODE },
  api: {
    own: ['core', 'engine', 'connectors', 'stores', 'compression', 'formats', 'aws', 'cluster'],
    packages: /./,
    node: ANY_NODE,
  },
  'index.ts': {
    own: ['core', 'engine', 'connectors', 'stores', 'compression', 'formats', 'aws', 'cluster', 'api'],
    packages: NONE,
    node: NONE,
  },
  cli: { own: ['core', 'server', 'index.ts'], packages: /./, node: ANY_NODE },
}

/** Where a file lies: its layer, and the folder within it (a connector's name); null outside of src/. */
function placeOf(path) {
  const parts = path.split(sep)
  const src = parts.lastIndexOf('src')
  if (src < 0 || parts[src + 1] === undefined) return null
  return { layer: parts[src + 1], inner: parts.length > src + 3 ? parts[src + 2] : null, file: parts.at(-1) }
}

function problemWith(file, specifier) {
  const from = placeOf(file)
  if (from === null) return null
  const rule = LAYERS[from.layer]
  if (rule === undefined) return null // said once for the file, by nameProblem
  if (specifier.startsWith('node:'))
    return rule.node.test(specifier) ? null : `${from.layer} may not import ${specifier}`
  if (!specifier.startsWith('.'))
    return rule.packages.test(specifier) ? null : `${from.layer} may import no package (${specifier})`
  const target = resolve(dirname(file), specifier)
  const to = placeOf(target)
  if (to === null) return `${from.layer} may not import from outside of src/ (${specifier})`
  if (to.layer !== from.layer) {
    return rule.own.includes(to.layer) ? null : `${from.layer} may not import from ${to.layer} (${specifier})`
  }
  if (rule.apart !== undefined && to.inner !== null && to.inner !== from.inner && from.file !== rule.apart) {
    return `only ${rule.apart} names the ${from.layer} (${specifier})`
  }
  return null
}

/** Words that say nothing of what a file or folder holds (design.md). */
const EMPTY_NAMES = /^(utils?|helpers?|commons?|types?|managers?|services?|misc|shared)(\.ts)?$/

function nameProblem(file) {
  const place = placeOf(file)
  if (place === null) return null
  if (LAYERS[place.layer] === undefined)
    return `src/${place.layer} is no layer: add it to test/support/oxlint-layers.mjs`
  const parts = file.split(sep)
  const empty = parts.slice(parts.lastIndexOf('src') + 1).find((part) => EMPTY_NAMES.test(part))
  return empty === undefined ? null : `${empty} says nothing of what it holds`
}

const layers = {
  create(context) {
    const file = context.physicalFilename ?? context.filename
    const check = (source) => {
      if (source?.type !== 'Literal' || typeof source.value !== 'string') return
      const problem = problemWith(file, source.value)
      if (problem !== null) context.report({ node: source, message: problem })
    }
    return {
      Program: (node) => {
        const problem = nameProblem(file)
        if (problem !== null) context.report({ node, message: problem })
      },
      ImportDeclaration: (node) => check(node.source),
      ExportNamedDeclaration: (node) => check(node.source),
      ExportAllDeclaration: (node) => check(node.source),
      ImportExpression: (node) => check(node.source),
      TSImportType: (node) => check(node.source ?? node.argument),
    }
  },
}

export default { meta: { name: 'sluice' }, rules: { layers } }
