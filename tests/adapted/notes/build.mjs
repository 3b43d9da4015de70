// Makes `notes.wasm` of `server.js`: bundles it, and puts it into a component with SpiderMonkey.

import { componentize } from '@bytecodealliance/componentize-js';
import { build } from 'esbuild';
import { cp, writeFile } from 'node:fs/promises';

// jco contains the WIT of WASI.
await cp('node_modules/@bytecodealliance/jco/lib/wit/builtin/0.2.12', 'wit/deps', { recursive: true });
await build({
  entryPoints: ['server.js'],
  bundle: true,
  format: 'esm',
  outfile: 'bundle.js',
  external: ['wasi:*', 'node:*'],
  // There is no location before the first request, and reading it then is an error.
  define: { 'self.location': 'undefined', location: 'undefined' },
});
const options = { sourcePath: 'bundle.js', witPath: 'wit', worldName: 'server', disableFeatures: [] };
const { component } = await componentize(options);
await writeFile('notes.wasm', component);
