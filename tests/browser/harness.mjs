// SPDX-License-Identifier: Apache-2.0
// What the browser's cases stand on: a redis-server under load, the server of the page, a browser that
// reports what the page must not do, and words for what a user does.
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
export const root = resolve(here, '../..');
const require = createRequire(join(root, 'web/'));
export const { chromium } = require('playwright-core');
export const axeFile = require.resolve('axe-core/axe.min.js');

const kChromium = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
  '--disable-background-networking', '--disable-component-update', '--disable-sync'];

export function check(condition, what) {
  if (!condition) throw new Error(what);
}

export function checkEqual(found, expected, what) {
  const [a, b] = [JSON.stringify(found), JSON.stringify(expected)];
  check(a === b, `${what}: found ${a}, expected ${b}`);
}

export function freePort() {
  return new Promise((ready) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => ready(port));
    });
  });
}

/** Waits until `test` gives something that is true, and gives that. */
export async function until(test, what, ms = 15_000) {
  const end = Date.now() + ms;
  for (;;) {
    const found = await test();
    if (found) return found;
    if (Date.now() > end) throw new Error(`waited in vain: ${what}`);
    await new Promise((go) => setTimeout(go, 50));
  }
}

export class Machine {
  children = [];
  folder = mkdtempSync(join(tmpdir(), 'clew-browser-'));

  start(words, options = {}) {
    const child = spawn(words[0], words.slice(1), { cwd: this.folder, stdio: ['ignore', 'pipe', 'ignore'], ...options });
    this.children.push(child);
    return child;
  }

  async redis(withLoad = true) {
    const port = await freePort();
    const server = this.start(['redis-server', '--port', String(port), '--save', '', '--appendonly', 'no']);
    await until(() => spawnSync('redis-cli', ['-p', String(port), 'ping']).stdout?.toString().includes('PONG'), 'redis-server');
    if (withLoad) this.start(['redis-benchmark', '-p', String(port), '-q', '-l', '-c', '4', '-n', '1000000', '-t', 'get,set,lpush', '-r', '1000']);
    return { port, pid: server.pid };
  }

  /** Runs the server of the page on the page that is built; gives its address with the token. */
  async ui(clew, words = []) {
    const page = join(root, 'web/dist');
    const snaps = join(this.folder, 'snaps');
    mkdirSync(snaps, { recursive: true });
    const given = process.env.CLEW_UI_EMBEDDED ? [] : ['--page', page];
    const child = this.start([clew, 'ui', '--port', '0', '--no-open', ...given, ...words], { cwd: snaps });
    let text = '';
    child.stdout.on('data', (part) => { text += part; });
    const found = await until(() => /http:\S+#token=([0-9a-f]+)/.exec(text), 'clew ui');
    return { url: found[0], token: found[1], origin: new URL(found[0]).origin };
  }

  async end() {
    const living = this.children.filter((it) => it.exitCode === null && it.signalCode === null);
    const gone = living.map((it) => new Promise((done) => it.once('exit', done)));
    living.reverse().forEach((it) => it.kill('SIGTERM'));
    const timer = setTimeout(() => living.forEach((it) => it.kill('SIGKILL')), 5000);
    await Promise.all(gone);
    clearTimeout(timer);
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Faults of any page: reports of the policy, errors of scripts. */
export const faults = [];

function watch(page) {
  page.on('pageerror', (error) => faults.push(`error: ${error.message}`));
  page.on('console', (message) => {
    const text = message.text();
    if (/Content Security Policy|TrustedScript|Trusted Type/.test(text)) faults.push(text);
  });
}

export async function openBrowser() {
  return chromium.launch({ executablePath: process.env.CLEW_CHROMIUM ?? '/usr/bin/chromium', args: kChromium });
}

export async function openPage(context, url) {
  const page = await context.newPage();
  watch(page);
  await page.goto(url);
  await page.locator('.cm-content').waitFor();
  return page;
}

export async function api(ui, path, init = {}) {
  return fetch(`${ui.origin}/api/v1/${path}`, { ...init, headers: { Authorization: `Bearer ${ui.token}`, 'Content-Type': 'application/json' } });
}

export async function chooseProcess(page, pid) {
  await page.fill('#search-processes', String(pid));
  const row = page.locator('.section', { hasText: 'Processes' }).locator('.picks button', { hasText: String(pid) }).first();
  await row.waitFor();
  if (await row.getAttribute('aria-pressed') !== 'true') await row.click();
  await page.fill('#search-processes', '');
}

export async function write(page, text) {
  await page.locator('.cm-content').click();
  await page.keyboard.press('Control+a');
  await page.keyboard.press('Delete');
  await page.keyboard.insertText(text);
}

/** Runs a query in a page; gives the session's id when it has rows. */
export async function run(page, text) {
  const before = await page.locator('.card').count();
  await write(page, text);
  await page.keyboard.press('Control+Enter');
  await until(async () => await page.locator('.card').count() > before, 'a session');
  const id = await page.evaluate(() => new Promise((ready) => setTimeout(() => ready(JSON.parse(localStorage.getItem('clew-ui')).session), 400)));
  await page.locator('#view-table').click();
  await until(async () => await page.locator('.grid tbody tr:not(.filler)').count() > 0, 'rows');
  return id;
}

/** The lines of one session, as the server keeps them, read without the page. */
export async function linesOf(ui, id) {
  const stop = new AbortController();
  const answer = await fetch(`${ui.origin}/api/v1/stream?after=0`, { headers: { Authorization: `Bearer ${ui.token}` }, signal: stop.signal });
  let text = '';
  const lines = [];
  for await (const part of answer.body) {
    text += Buffer.from(part).toString('utf8');
    const end = text.lastIndexOf('\n');
    for (const line of text.slice(0, end).split('\n').filter(Boolean)) lines.push(JSON.parse(line));
    text = text.slice(end + 1);
    if (lines.some((it) => it.id === id && it.line?.end) || lines.some((it) => it.beat)) break;
  }
  stop.abort();
  return lines.filter((it) => it.id === id && it.line).map((it) => it.line);
}

/** The intervals of a table with their rows. */
export function intervalsOf(lines) {
  const intervals = [];
  let rows = [];
  for (const line of lines) {
    if (line.rows) rows.push(...line.rows);
    if (!line.interval) continue;
    intervals.push({ ...line.interval, rows });
    rows = [];
  }
  return { columns: lines.find((it) => it.columns)?.columns ?? [], intervals, rest: rows };
}

/** What the grid shows, by the exact values in its tooltips. */
export async function gridOf(page) {
  return page.locator('.grid').first().evaluate((grid) => [...grid.querySelectorAll('tbody tr:not(.filler)')]
    .map((row) => [...row.querySelectorAll('td')].map((cell) => cell.title)));
}

export async function stopped(page, id) {
  const card = page.locator('.card.chosen');
  await card.locator('button', { hasText: 'Stop' }).click();
  await until(async () => (await card.textContent()).includes('ended'), `the end of ${id}`);
}
