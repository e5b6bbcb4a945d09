// SPDX-License-Identifier: Apache-2.0
// Builds web/dist from web/src: `node build.mjs [FOLDER]`. The same sources give the same bytes, also
// of the gzipped files, which Clew embeds: gzip -n writes no time and no name, and its bytes do not
// depend on node's version. dist.sha256 has the sums of web/dist.
import * as esbuild from 'esbuild';
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createHash } from 'node:crypto';
import { execFileSync } from 'node:child_process';

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
  target: 'es2022', legalComments: 'none', charset: 'utf8',
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
  const packed = execFileSync('gzip', ['-9', '-n', '-c', join(dist, name)], { maxBuffer: 1 << 26 });
  writeFileSync(join(dist, `${name}.gz`), packed);
  console.log(name.padEnd(20), String(packed.length).padStart(7), 'bytes gzipped');
}

if (!process.argv[2]) {
  const sums = readdirSync(dist).sort().map((name) => {
    const sum = createHash('sha256').update(readFileSync(join(dist, name))).digest('hex');
    return `${sum}  dist/${name}\n`;
  });
  writeFileSync(join(here, 'dist.sha256'), sums.join(''));
}
