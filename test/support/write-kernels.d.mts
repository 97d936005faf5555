/** Of each kernel: the path of its .ts file, and the text that its .wat file makes of it. */
export function kernels(): Promise<{ path: URL; source: string }[]>
