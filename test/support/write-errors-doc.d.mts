import type { ERROR_RULES } from '../../src/core/errors.ts'

/** The whole of docs/errors.md. */
export declare function renderErrorsDoc(rules: typeof ERROR_RULES): string
