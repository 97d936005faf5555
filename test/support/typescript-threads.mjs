// Preloaded into the processes of vitest: threads that src/ starts are TypeScript there, which Node 20 does not take by itself. Threads inherit the
// preload, vitest's own loading of src/ goes another way.
import { register } from 'node:module'

if (process.features.typescript === undefined || process.features.typescript === false)
  register(new URL('./typescript-hook.mjs', import.meta.url))
