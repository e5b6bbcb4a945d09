// SPDX-License-Identifier: Apache-2.0
// Prints what the page takes, against its budgets: `node budgets.mjs`. A small server stands for Clew's,
// so that rows come at a known rate; the page, the worker and the browser are the real ones.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { openBrowser, root } from './harness.mjs';

const kTypes = { html: 'text/html', js: 'text/javascript', css: 'text/css', svg: 'image/svg+xml' };
const kPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; " +
  "worker-src 'self'; require-trusted-types-for 'script'";
const kSeconds = 8;
const kColumns = [{ name: 'time', type: 'time', role: 'plain' }, { name: 'function', type: 'string', role: 'plain' },
  { name: 'elapsed', type: 'integer', unit: 'ns', role: 'plain' }];

let feed = { rate: 0, opening: [] };

function rowsOf(count, at) {
  return Array.from({ length: count }, (_, i) => [String(BigInt(at) * 1000000n + BigInt(i)), `function_${i % 37}`, 100 + (i * 7919) % 90000]);
}

function stream(answer) {
  let n = 0;
  let seq = 0;
  const put = (line) => answer.write(`${JSON.stringify({ n: ++n, id: 's1', line: { seq: seq++, ...line } })}\n`);
  feed.opening.forEach(put);
  const start = Date.now();
  let sent = 0;
  const timer = setInterval(() => {
    const due = Math.floor(feed.rate * (Date.now() - start) / 1000);
    while (sent < due) {
      const count = Math.min(256, due - sent);
      put({ rows: rowsOf(count, Date.now()) });
      sent += count;
    }
  }, 10);
  const beats = setInterval(() => answer.write(`{"n":${n},"beat":"${Date.now()}000000"}\n`), 1000);
  answer.on('close', () => { clearInterval(timer); clearInterval(beats); });
}

function api(path, answer) {
  if (path.startsWith('stream')) {
    answer.writeHead(200, { 'Content-Type': 'application/x-ndjson' });
    return stream(answer);
  }
  const info = { id: 's1', text: 'from c in …', language: 'query', targets: [], state: 'running', started: `${Date.now()}000000`, lines: 0 };
  const known = { sessions: { sessions: [info] }, processes: { processes: [] }, traced: { traced: [] }, examples: { examples: [] }, check: { diagnostics: [] } };
  answer.writeHead(200, { 'Content-Type': 'application/json' });
  answer.end(JSON.stringify(known[path.split('?')[0]] ?? {}));
}

const server = createServer((request, answer) => {
  const path = request.url.slice(1);
  if (path.startsWith('api/v1/')) return api(path.slice(7), answer);
  const name = path || 'index.html';
  try {
    const body = readFileSync(join(root, 'web/dist', name));
    answer.writeHead(200, { 'Content-Type': kTypes[name.split('.').pop()], 'Content-Encoding': 'gzip', 'Content-Security-Policy': kPolicy });
    answer.end(gzipSync(body, { level: 9 }));
  } catch {
    answer.writeHead(404).end();
  }
});
await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
const address = `http://127.0.0.1:${server.address().port}/#token=${'0'.repeat(64)}&s=s1`;
const browser = await openBrowser();
let over = 0;

function tell(what, found, limit, unit, most = true) {
  const fits = most ? found <= limit : found >= limit;
  if (!fits) over++;
  console.log(`${fits ? 'ok  ' : 'OVER'} ${what.padEnd(44)} ${found.toFixed(1).padStart(9)} ${unit} (${most ? 'at most' : 'at least'} ${limit})`);
}

async function page(view) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const made = await context.newPage();
  await made.goto(`${address}&view=${view}`);
  return made;
}

/** The times between frames, in ms, of some seconds. */
async function frames(made, seconds) {
  return made.evaluate((ms) => new Promise((ready) => {
    const times = [];
    let last = performance.now();
    const end = last + ms;
    const next = (now) => {
      times.push(now - last);
      last = now;
      if (now < end) requestAnimationFrame(next);
      else ready(times.slice(1).sort((a, b) => a - b));
    };
    requestAnimationFrame(next);
  }), seconds * 1000);
}

async function rate(rows, view) {
  feed = { rate: rows, opening: [{ session: { version: 1, query: '…', targets: [], host: 'vm', started: '0' } }, { columns: kColumns, mode: 'events' }] };
  const made = await page(view);
  await made.locator('.grid tbody tr').first().waitFor();
  const times = await frames(made, kSeconds);
  await made.context().close();
  return times;
}

function stacks() {
  const rows = [];
  for (let i = 0; i < 10_000; i++) {
    const frames = Array.from({ length: 10 }, (_, depth) => ({ symbol: `f_${depth}_${depth < 3 ? i % (2 + depth * 9) : i}`, module: `lib${depth % 4}.so` }));
    rows.push([frames.reverse(), 1 + i % 7]);
  }
  return rows;
}

function bytes(names) {
  return names.reduce((sum, name) => sum + readFileSync(join(root, 'web/dist', `${name}.gz`)).length, 0) / 1000;
}

tell('first picture', bytes(['index.html', 'app.js', 'app.css']), 45, 'kB');
tell('all', bytes(['index.html', 'app.js', 'app.css', 'editor.js', 'stream-worker.js', 'icon.svg']), 220, 'kB');
const first = await page('table');
await first.locator('.cm-content').waitFor();
tell('first picture', await first.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0].startTime), 300, 'ms');
await first.context().close();
const slow = await rate(10_000, 'table');
tell('10,000 rows a second: frame, 99 of 100', slow[Math.floor(slow.length * 0.99)], 17, 'ms');
tell('10,000 rows a second: longest frame', slow[slow.length - 1], 50, 'ms');
const fast = await rate(100_000, 'table');
tell('100,000 rows a second: frames a second', fast.length / kSeconds, 30, '/s', false);
const rows = stacks();
feed = { rate: 0, opening: [{ session: { version: 1, query: '…', targets: [], host: 'vm', started: '0' } },
  { columns: [{ name: 'ustack', type: 'stack', role: 'key' }, { name: 'calls', type: 'integer', role: 'aggregate' }], mode: 'table' },
  { rows }, { interval: { number: 1, begin: '1', end: '2', partial: false } }] };
const flame = await page('table');
await flame.locator('.grid tbody tr').first().waitFor();
await flame.locator('.cm-content').waitFor();
tell('100,000 frames of stacks: flame graph', await flame.evaluate(() => new Promise((ready) => {
  const start = performance.now();
  document.querySelector('#view-flame').click();
  const look = () => (document.querySelector('.flame canvas')?.width > 300 ? ready(performance.now() - start) : requestAnimationFrame(look));
  requestAnimationFrame(look);
})), 100, 'ms');
await browser.close();
server.closeAllConnections();
server.close();
process.exit(over > 0 ? 1 : 0);
