// SPDX-License-Identifier: Apache-2.0
// Looks: each page in both themes, wide and narrow, without a serious fault of accessibility.
import { readFileSync } from 'node:fs';
import { axeFile, check, openPage, until } from './harness.mjs';

const kPages = ['ask', 'sessions', 'recorder', 'cluster', 'machine'];
const kViews = ['table', 'bars', 'time', 'histogram', 'heat', 'flame', 'explain'];

async function audit(page, what) {
  const found = await page.evaluate(async () => {
    const { violations } = await globalThis.axe.run(document, { resultTypes: ['violations'] });
    return violations.filter((it) => it.impact === 'serious' || it.impact === 'critical')
      .map((it) => `${it.id}: ${it.nodes.slice(0, 3).map((node) => node.html.slice(0, 120)).join(' | ')}`);
  });
  check(found.length === 0, `${what}: ${found.join('\n')}`);
}

async function noOverflow(page, what) {
  const wide = await page.evaluate(() => [document.documentElement,
    ...document.querySelectorAll('.view-bar, .run-bar, .losses-line, .top')]
    .filter((it) => it.scrollWidth > it.clientWidth + 1)
    .map((it) => `${it.className || 'the page'} by ${it.scrollWidth - it.clientWidth} pixels`));
  check(wide.length === 0, `${what}: wider than its place: ${wide.join(', ')}`);
}

async function look(world, theme, width) {
  const { browser, ui, shots } = world;
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme: theme });
  const page = await openPage(context, ui.url);
  await until(async () => (await page.locator('.card').count()) > 0, 'the sessions');
  // The driver's own way in, which the page's policy does not concern.
  await page.evaluate(readFileSync(axeFile, 'utf8'));
  await page.locator('.card', { hasText: 'Command' }).last().locator('button', { hasText: 'Open' }).click();
  for (const view of kViews) {
    if (view === 'flame' && (await page.locator('.card', { hasText: 'zmalloc' }).count()) > 0) {
      await page.locator('.card', { hasText: 'zmalloc' }).last().locator('button', { hasText: 'Open' }).click();
    }
    await page.locator(`#view-${view}`).click();
    await page.waitForTimeout(view === 'explain' ? 900 : 250);
    await noOverflow(page, `${view}, ${theme}, ${width}`);
    await audit(page, `${view}, ${theme}, ${width}`);
    if (shots) await page.screenshot({ path: `${shots}/${view}-${theme}-${width}.png` });
  }
  for (const name of kPages) {
    await page.locator(`#tab-${name}`).click();
    await page.waitForTimeout(name === 'machine' ? 900 : 250);
    await noOverflow(page, `${name}, ${theme}, ${width}`);
    await audit(page, `${name}, ${theme}, ${width}`);
    if (shots) await page.screenshot({ path: `${shots}/${name}-${theme}-${width}.png` });
  }
  await context.close();
}

export const cases = ['light', 'dark'].flatMap((theme) => [1440, 1100].map((width) =>
  [`${theme} at ${width} pixels`, (world) => look(world, theme, width)]));
