import { SluiceError } from '../../../core/errors.ts'
import { checkNumber, shown } from './number.ts'

/** Levels of lists and maps in an attribute (AWS, "Service, account, and table quotas"). */
const MOST_LEVELS = 32

/** A JSON value whose numbers are their own text. */
export type JsonNode =
  | { readonly kind: 'string' | 'number'; readonly text: string }
  | { readonly kind: 'true' | 'false' | 'null' }
  | { readonly kind: 'array'; readonly items: readonly JsonNode[] }
  | { readonly kind: 'object'; readonly entries: readonly (readonly [string, JsonNode])[] }

/** Reads JSON without a number losing a digit. @throws SLUICE_VALUE where it is none, or nested too deep */
export function parseJson(text: string): JsonNode {
  return new Parser(text).whole()
}

/** A value with its types as DynamoDB writes them: `{"M":{"a":{"N":"1"}}}`. @throws SLUICE_VALUE */
export function toWire(node: JsonNode): string {
  switch (node.kind) {
    case 'string':
      return `{"S":${JSON.stringify(node.text)}}`
    case 'number':
      return `{"N":"${checkNumber(node.text)}"}`
    case 'true':
    case 'false':
      return `{"BOOL":${node.kind}}`
    case 'null':
      return '{"NULL":true}'
    case 'array':
      return `{"L":[${node.items.map(toWire).join(',')}]}`
    case 'object':
      return `{"M":{${node.entries.map(([name, value]) => `${JSON.stringify(name)}:${toWire(value)}`).join(',')}}}`
  }
}

const WORDS = ['true', 'false', 'null'] as const
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const STRING = /"(?:[^"\\]|\\.)*"/sy

class Parser {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  whole(): JsonNode {
    const node = this.#value(0)
    this.#blank()
    if (this.#at < this.#text.length) throw this.#wrong()
    return node
  }

  #value(level: number): JsonNode {
    this.#blank()
    const first = this.#text[this.#at]
    if (first === '"') return { kind: 'string', text: this.#string() }
    if (first === '[' || first === '{') {
      if (level === MOST_LEVELS) throw tooDeep()
      return first === '[' ? this.#array(level + 1) : this.#object(level + 1)
    }
    const word = WORDS.find((one) => this.#text.startsWith(one, this.#at))
    if (word !== undefined) {
      this.#at += word.length
      return { kind: word }
    }
    return { kind: 'number', text: this.#token(NUMBER) }
  }

  #array(level: number): JsonNode {
    const items: JsonNode[] = []
    this.#at += 1
    if (this.#takes(']')) return { kind: 'array', items }
    for (;;) {
      items.push(this.#value(level))
      if (this.#takes(']')) return { kind: 'array', items }
      this.#wants(',')
    }
  }

  #object(level: number): JsonNode {
    const entries = new Map<string, JsonNode>()
    this.#at += 1
    if (this.#takes('}')) return { kind: 'object', entries: [] }
    for (;;) {
      this.#blank()
      const name = this.#string()
      if (entries.has(name)) throw new SluiceError('SLUICE_VALUE', `the key ${shown(name)} comes twice in an object`)
      this.#wants(':')
      entries.set(name, this.#value(level))
      if (this.#takes('}')) return { kind: 'object', entries: [...entries] }
      this.#wants(',')
    }
  }

  #string(): string {
    const token = this.#token(STRING)
    let text: string
    try {
      text = String(JSON.parse(token))
    } catch {
      throw this.#wrong()
    }
    // As at the top of a row: no UTF-8 holds it.
    if (token.includes('\\u') && /\p{Surrogate}/u.test(text))
      throw new SluiceError('SLUICE_ENCODING', 'half of a surrogate pair in a string')
    return text
  }

  #token(pattern: RegExp): string {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#text)?.[0]
    if (found === undefined) throw this.#wrong()
    this.#at += found.length
    return found
  }

  #takes(character: string): boolean {
    this.#blank()
    if (this.#text[this.#at] !== character) return false
    this.#at += 1
    return true
  }

  #wants(character: string): void {
    if (!this.#takes(character)) throw this.#wrong()
  }

  #blank(): void {
    while (' \t\r\n'.includes(this.#text[this.#at] ?? 'x')) this.#at += 1
  }

  #wrong(): SluiceError {
    return new SluiceError('SLUICE_VALUE', `${shown(this.#text)} is no JSON (at character ${this.#at + 1})`)
  }
}

/** What DynamoDB says of more than 32 levels, said before. */
export function tooDeep(): SluiceError {
  return new SluiceError('SLUICE_VALUE', `lists and maps are nested deeper than DynamoDB's ${MOST_LEVELS} levels`)
}

/** Levels that an attribute may have. */
export function isTooDeep(level: number): boolean {
  return level > MOST_LEVELS
}
