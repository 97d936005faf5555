/** What is used of WebAssembly: its own declarations come with the DOM's. */
interface WebAssemblyApi {
  readonly Module: new (bytes: Uint8Array) => object
  readonly Instance: new (module: object) => { readonly exports: unknown }
}

/**
 * Instances of a WebAssembly module that stands in the program in base64, each with memory of its own. Compiled when the first is wanted. `Kernel`: what its
 * `.wat` exports; a unit test holds the two together.
 */
export function kernels<Kernel>(base64: string): () => Kernel {
  let compiled: object | null = null
  return () => {
    const { Module, Instance } = Reflect.get(globalThis, 'WebAssembly') as WebAssemblyApi
    compiled ??= new Module(Buffer.from(base64, 'base64'))
    return new Instance(compiled).exports as Kernel
  }
}
