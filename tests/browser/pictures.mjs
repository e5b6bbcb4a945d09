// SPDX-License-Identifier: Apache-2.0
// Makes the pictures of docs/ui-tour.md, of real processes: `node pictures.mjs CLEW`.
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { chooseProcess, freePort, Machine, openBrowser, openPage, root, run, until } from './harness.mjs';

const clew = resolve(process.argv[2]);
const folder = join(root, 'docs/ui');
mkdirSync(folder, { recursive: true });
const machine = new Machine();
const browser = await openBrowser();

const kPython = `import json, time
def build(n):
    return {str(i): list(range(i % 40)) for i in range(n)}
while True:
    json.dumps(build(400))
    time.sleep(0.01)
`;

async function nginx() {
  const port = await freePort();
  const conf = join(machine.folder, 'nginx.conf');
  writeFileSync(conf, `daemon off; master_process off; pid ${machine.folder}/nginx.pid; error_log ${machine.folder}/error.log;
events {} http { access_log off; client_body_temp_path ${machine.folder}; server { listen 127.0.0.1:${port}; location / { return 200 "hello\\n"; } } }\n`);
  const child = machine.start(['nginx', '-c', conf]);
  const timer = setInterval(() => { for (let i = 0; i < 20; i++) fetch(`http://127.0.0.1:${port}/`).catch(() => {}); }, 50);
  return { pid: child.pid, end: () => clearInterval(timer) };
}

async function choose(page, pid) {
  for (const chip of await page.locator('.chips button').all()) await chip.click();
  await chooseProcess(page, pid);
}

async function session(page, pid, text, rows = 1) {
  await choose(page, pid);
  await run(page, text);
  await until(async () => (await page.locator('.grid tbody tr:not(.filler)').count()) >= rows, 'rows');
}

/** With fewer colours where pngquant is there: a picture has at most 150 kB. */
async function picture(page, name, process = '') {
  if (process) await page.fill('#search-processes', process);
  await page.mouse.move(720, 780);
  await page.waitForTimeout(700);
  const file = join(folder, `${name}.png`);
  await page.screenshot({ path: file });
  spawnSync('pngquant', ['--force', '--ext', '.png', '--strip', '128', file]);
}

let web = null;
try {
  const redis = await machine.redis();
  web = await nginx();
  const script = join(machine.folder, 'orders.py');
  writeFileSync(script, kPython);
  const python = machine.start(['/usr/bin/python3', script]);
  const ui = await machine.ui(clew);
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, colorScheme: 'light' });
  const page = await openPage(context, ui.url);
  await picture(page, 'empty', 'python3');
  await session(page, web.pid, 'from c in return("nginx!ngx_http_*")\ngroup by c.function\nselect c.function, calls = count(), mean = avg(c.elapsed), p99 = p99(c.elapsed)\norderby calls descending\nevery 1s', 5);
  await page.waitForTimeout(4000);
  await picture(page, 'table', 'nginx');
  await page.locator('#view-time').click();
  await picture(page, 'time', 'nginx');
  await session(page, python.pid, 'from m in entry("malloc")\ngroup by m.ustack\nselect m.ustack, calls = count(), bytes = sum(m.arg0)\nevery 1s');
  await page.waitForTimeout(2500);
  await page.locator('#view-flame').click();
  await picture(page, 'flame', 'python3');
  await page.locator('#view-explain').click();
  await page.locator('.tiers').waitFor();
  await picture(page, 'explain', 'python3');
  await session(page, redis.pid, 'from c in return("redis-server!*Command")\ngroup by c.function\nselect c.function, calls = count(), mean = avg(c.elapsed), spread = quantize(c.elapsed)\nevery 1s');
  await page.waitForTimeout(25_000);
  await page.emulateMedia({ colorScheme: 'dark' });
  await page.locator('#view-heat').click();
  await picture(page, 'heat', 'redis');
  await page.locator('#tab-sessions').click();
  await picture(page, 'sessions');
  await page.locator('#tab-machine').click();
  await page.locator('.checks').waitFor();
  await picture(page, 'machine');
} finally {
  web?.end();
  await browser.close();
  await machine.end();
}
