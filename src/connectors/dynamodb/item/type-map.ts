import { SluiceError } from '../../../core/errors.ts'
import type { Column, NeutralType } from '../../../core/schema.ts'
import type { IndexKey, KeyAttribute } from '../table-info.ts'

/** What a column's values become. `any`: each as its own type says. `json`: by the JSON in it. `ttl`: whole seconds since 1970. */
export type AttributeKind = 'S' | 'N' | 'B' | 'BOOL' | 'NULL' | 'L' | 'M' | 'SS' | 'NS' | 'BS' | 'json' | 'ttl' | 'any'

const OF_NEUTRAL: Readonly<Record<NeutralType, AttributeKind>> = {
  string: 'S',
  integer: 'N',
  number: 'N',
  boolean: 'BOOL',
  date: 'S',
  time: 'S',
  timestamp: 'S',
  timestamptz: 'S',
  binary: 'B',
  json: 'json',
  list: 'L',
  map: 'M',
  'string-set': 'SS',
  'number-set': 'NS',
  'binary-set': 'BS',
  ttl: 'ttl',
}

const LETTERS: readonly AttributeKind[] = ['S', 'N', 'B', 'BOOL', 'NULL', 'L', 'M', 'SS', 'NS', 'BS']

/** A column whose type was perhaps inferred: `manyDigits` where a number of it has more than the 38 digits of DynamoDB's. */
type MeasuredColumn = Column & { readonly manyDigits?: true | undefined }

/** A column of a source, as an attribute. */
export interface Attribute {
  readonly name: string
  readonly kind: AttributeKind
  /** A key is never missing, NULL or empty, and of the key's type. */
  readonly key: 'partition' | 'sort' | null
  /** Where it is a key of an index, and not of the table: it may be missing, but not NULL, empty or of another type. */
  readonly index?: IndexKey
  /** Whether a value of another type may become one of this: text of CSV, and what `--type` asks for. */
  readonly converts: boolean
}

/**
 * What becomes of a column's values: its type by `--type` or inference, and the table's own where it is a key. `typed` values that say their own
 * types keep them.
 *
 * @throws SLUICE_USAGE for a type that DynamoDB has not, and for one that a key of the table or of an index has not
 */
export function attributeOf(
  column: MeasuredColumn,
  o: {
    readonly keys: readonly KeyAttribute[]
    readonly indexKeys?: readonly IndexKey[]
    readonly typed: boolean
    readonly explicit: boolean
  },
): Attribute {
  const { name } = column
  const at = o.keys.findIndex((key) => key.name === name)
  const key = o.keys[at]
  const index = o.indexKeys?.find((one) => one.name === name)
  const kind = kindOf(column, o)
  const converts = o.explicit || !o.typed
  const wanted = key?.type ?? index?.type ?? null
  if (o.explicit && wanted !== null && kind !== wanted && !(kind === 'ttl' && wanted === 'N'))
    throw new SluiceError(
      'SLUICE_USAGE',
      `--type makes ${kind} of "${name}", and the ${key === undefined ? `key of the index ${index?.index}` : "table's key"} is ${wanted}`,
      { where: { column: name }, hint: `leave --type of ${name} out` },
    )
  if (key !== undefined) return { name, kind: key.type, key: at === 0 ? 'partition' : 'sort', converts }
  // Values that say their own types are looked at one by one.
  if (index !== undefined) return { name, kind: converts ? index.type : kind, key: null, index, converts }
  return { name, kind, key: null, converts }
}

/** The key that no attribute of these stands for; null where each has one. `sorted`: the table has a sort key. */
export function lackingKey(attributes: readonly Attribute[], sorted: boolean): 'partition' | 'sort' | null {
  const has = (key: 'partition' | 'sort'): boolean => attributes.some((attribute) => attribute.key === key)
  if (!has('partition')) return 'partition'
  return sorted && !has('sort') ? 'sort' : null
}

function kindOf(column: MeasuredColumn, o: { readonly typed: boolean; readonly explicit: boolean }): AttributeKind {
  // Only what `--type` says can be of the sink's own types; a source's native type is its own system's.
  if (o.explicit && column.nativeType !== undefined) {
    const letters = column.nativeType.toUpperCase()
    const found = LETTERS.find((kind) => kind === letters)
    if (found === undefined)
      throw new SluiceError('SLUICE_USAGE', `--type ${column.name}=${column.nativeType}: DynamoDB has no such type`, {
        hint: `one of ${LETTERS.join(', ')}, or ${Object.keys(OF_NEUTRAL).join(', ')}`,
      })
    return found
  }
  if (o.typed && !o.explicit) return 'any'
  // Written back, such a number would not be the same text.
  if (column.manyDigits === true && !o.explicit) return 'S'
  return column.type === undefined ? 'S' : OF_NEUTRAL[column.type]
}
