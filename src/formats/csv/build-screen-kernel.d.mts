/** The text of screen-kernel.ts. */
export function kernelSource(): Promise<string>
