/**
 * Where the module beside another is, for a thread to begin with: JavaScript in the program's own build, TypeScript where the sources themselves run.
 * `from`: the other's `import.meta.url`.
 */
export function siblingModule(name: string, from: string): URL {
  return new URL(`./${name}${from.endsWith('.ts') ? '.ts' : '.js'}`, from)
}
