// SPDX-License-Identifier: Apache-2.0
// Builds web/dist from web/src: `node build.mjs [FOLDER]`. The same sources give the same bytes, also
// of the gzipped files, which Clew embeds: node's zlib at level 9 writes no time and no name.
import * as esbuild from 'esbuild';
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const here = dirname(fileURLToPath(import.meta.url));
const dist = resolve(process.argv[2] ?? join(here, 'dist'));
rmSync(dist, { recursive: true, force: true });
mkdirSync(dist, { recursive: true });

const bundled = ['preact', 'uplot', '@codemirror/view', '@lezer/highlight'];
const licences = bundled.map((name) => {
  const folder = join(here, 'node_modules', name);
  return `${name} (and its packages)\n\n${readFileSync(join(folder, 'LICENSE'), 'utf8').trim()}\n`;
}).join(`\n${'-'.repeat(72)}\n\n`);

const common = {
  bundle: true, minify: true, write: true, absWorkingDir: here, logLevel: 'warning',
  target: ['chrome114', 'firefox115', 'safari16.4'], legalComments: 'none', charset: 'utf8',
  jsx: 'automatic', jsxImportSource: 'preact', format: 'esm', external: ['./editor.js'],
};
await esbuild.build({ ...common, entryPoints: { app: 'src/main.tsx' }, outdir: dist });
await esbuild.build({ ...common, entryPoints: { editor: 'src/editor/main.ts' }, outdir: dist });
await esbuild.build({ ...common, entryPoints: { 'stream-worker': 'src/stream/worker.ts' }, outdir: dist,
  format: 'iife' });
await esbuild.build({ ...common, entryPoints: { app: 'src/style/app.css' }, outdir: dist });
for (const name of ['index.html', 'icon.svg']) {
  writeFileSync(join(dist, name), readFileSync(join(here, 'src', name)));
}
const own = 'The page is Clew\'s own: SPDX-License-Identifier: Apache-2.0. It has parts of others:\n\n';
writeFileSync(join(dist, 'LICENSES.txt'), (own + licences).replaceAll(/[ \t]+$/gm, ''));
for (const name of readdirSync(dist).sort()) {
  if (name === 'LICENSES.txt') continue;
  const packed = gzipSync(readFileSync(join(dist, name)), { level: 9 });
  packed[9] = 0xff;  // The system that packed it: unknown, so that all give the same bytes.
  writeFileSync(join(dist, `${name}.gz`), packed);
  console.log(name.padEnd(20), String(packed.length).padStart(7), 'bytes gzipped');
}
