/** The text of row-kernel.ts or column-kernel.ts. */
export function kernelSource(file: 'row-kernel' | 'column-kernel'): Promise<string>
