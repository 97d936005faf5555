import { SluiceError } from '../../core/errors.ts'

const TOKEN = /[\t\n\r ]*(?:("(?:[^"\\]|\\.)*")|(-?\d[\d.eE+-]*)|(true|false|null)|([[\]{}:,]))/suy
/** Bounds the stack; DynamoDB takes 32 levels. */
const DEEPEST = 1000

/**
 * Plain JSON with the types that DynamoDB gives it: objects are maps, arrays lists, numbers exact by their own text.
 * The text is valid JSON already (JsonText).
 *
 * @throws SLUICE_JSON
 */
export function typedFromJson(text: string): string {
  const scanner = new Scanner(text)
  const typed = scanner.value(0)
  scanner.end()
  return typed
}

class Scanner {
  readonly #text: string
  #at = 0
  #token = ''

  constructor(text: string) {
    this.#text = text
    this.#next()
  }

  end(): void {
    if (this.#token !== '') throw wrong()
  }

  value(depth: number): string {
    if (depth > DEEPEST) throw new SluiceError('SLUICE_JSON', `nested deeper than ${DEEPEST} levels`)
    const token = this.#token
    const first = token.charCodeAt(0)
    this.#next()
    if (first === 0x22) return `{"S":${token}}`
    if (first === 0x7b) return `{"M":{${this.#members('}', depth)}}}`
    if (first === 0x5b) return `{"L":[${this.#members(']', depth)}]}`
    if (token === 'true' || token === 'false') return `{"BOOL":${token}}`
    if (token === 'null') return '{"NULL":true}'
    if (first === 0x2d || (first >= 0x30 && first <= 0x39)) return `{"N":"${token}"}`
    throw wrong()
  }

  /** What is between brackets, up to and with the closing one. */
  #members(close: '}' | ']', depth: number): string {
    const members: string[] = []
    while (this.#token !== close) {
      if (members.length > 0) this.#take(',')
      let name = ''
      if (close === '}') {
        name = `${this.#token}:`
        if (!name.startsWith('"')) throw wrong()
        this.#next()
        this.#take(':')
      }
      members.push(name + this.value(depth + 1))
    }
    this.#next()
    return members.join(',')
  }

  #take(token: string): void {
    if (this.#token !== token) throw wrong()
    this.#next()
  }

  /** The next token; empty at the end. */
  #next(): void {
    TOKEN.lastIndex = this.#at
    const match = TOKEN.exec(this.#text)
    if (match === null) {
      if (this.#text.slice(this.#at).trim() !== '') throw wrong()
      this.#token = ''
      return
    }
    this.#at = TOKEN.lastIndex
    this.#token = match[1] ?? match[2] ?? match[3] ?? match[4] ?? ''
  }
}

function wrong(): SluiceError {
  return new SluiceError('SLUICE_JSON', 'a nested value that is no JSON')
}
