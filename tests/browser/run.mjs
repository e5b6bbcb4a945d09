// SPDX-License-Identifier: Apache-2.0
// Uses the page as people do: `node run.mjs CLEW [WORD]`; WORD: only cases with it in their name.
// CLEW_SHOTS: a folder for a picture of each page and view. CLEW_UI_EMBEDDED=1: the page that is in CLEW.
import { mkdirSync } from 'node:fs';
import { resolve } from 'node:path';
import * as asks from './asks.mjs';
import { faults, Machine, openBrowser, openPage } from './harness.mjs';
import * as looks from './looks.mjs';
import * as recorder from './recorder.mjs';

const clew = resolve(process.argv[2] ?? process.env.CLEW ?? 'clew');
const word = process.argv[3] ?? '';
const shots = process.env.CLEW_SHOTS;
if (shots) mkdirSync(shots, { recursive: true });

const machine = new Machine();
const browser = await openBrowser();
let failed = 0;
try {
  const redis = await machine.redis();
  const ui = await machine.ui(clew);
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, colorScheme: 'dark' });
  const page = await openPage(context, ui.url);
  const world = { machine, browser, context, page, ui, redis, clew, shots };
  for (const [name, test] of [...asks.cases, ...recorder.cases, ...looks.cases]) {
    if (!name.includes(word)) continue;
    const start = Date.now();
    faults.length = 0;
    try {
      const skipped = await test(world);
      if (skipped) {
        console.log(`skip ${name}: ${skipped}`);
        continue;
      }
      if (faults.length > 0) throw new Error(`the browser reports: ${faults.join('\n')}`);
      console.log(`ok   ${name} (${((Date.now() - start) / 1000).toFixed(1)} s)`);
    } catch (error) {
      failed++;
      console.log(`FAIL ${name}\n     ${error.message.split('\n').slice(0, 12).join('\n     ')}`);
      if (shots) await page.screenshot({ path: `${shots}/failed-${failed}.png` });
    }
  }
} finally {
  await browser.close();
  await machine.end();
}
process.exit(failed > 0 ? 1 : 0);
