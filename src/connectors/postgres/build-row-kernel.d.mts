/** The text of row-kernel.ts. */
export function rowKernelSource(): Promise<string>
