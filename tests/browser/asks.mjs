// SPDX-License-Identifier: Apache-2.0
// Asking: run, fix, stop, reload, ten tabs, each view against the stream, killed target, exports, keys.
import { spawnSync } from 'node:child_process';
import { api, check, checkEqual, chooseProcess, gridOf, intervalsOf, linesOf, openPage, run, stopped, until,
         write } from './harness.mjs';

export const kQuery = 'from c in return("redis-server!*Command")\ngroup by c.function\n' +
  'select c.function, calls = count(), spread = quantize(c.elapsed)\norderby calls descending\nevery 1s';
export const kStacks = 'from m in entry("redis-server!zmalloc")\ngroup by m.ustack\n' +
  'select m.ustack, calls = count()\nevery 1s';

const whole = (text) => Number(text.replaceAll(/[^\d]/g, ''));

/** Rows as the grid's tooltips tell them. */
function told(rows, columns) {
  return rows.map((row) => row.map((value, i) => (columns[i].type === 'histogram' ? null : String(value) + (columns[i].unit && typeof value === 'number' ? ` ${columns[i].unit}` : ''))));
}

async function ended(world) {
  const { page, ui, redis } = world;
  if (world.ended) return world.ended;
  await chooseProcess(page, redis.pid);
  const id = await run(page, kQuery);
  await until(async () => intervalsOf(await linesOf(ui, id)).intervals.length >= 3, 'three intervals');
  await stopped(page, id);
  world.ended = { id, ...intervalsOf(await linesOf(ui, id)) };
  return world.ended;
}

async function table(world) {
  const { page } = world;
  const { columns, intervals } = await ended(world);
  await page.locator('#view-table').click();
  const last = intervals[intervals.length - 1];
  const shown = (await gridOf(page)).map((row) => row.map((cell, i) => (columns[i].type === 'histogram' ? null : cell)));
  checkEqual(shown, told(last.rows, columns), 'the table of the last interval');
  await page.keyboard.press('[');
  const before = (await gridOf(page)).map((row) => row.map((cell, i) => (columns[i].type === 'histogram' ? null : cell)));
  checkEqual(before, told(intervals[intervals.length - 2].rows, columns), 'the table of the interval before');
  await page.keyboard.press(']');
}

async function views(world) {
  const { page } = world;
  const { intervals, columns } = await ended(world);
  const last = intervals[intervals.length - 1];
  const spread = columns.findIndex((it) => it.type === 'histogram');
  const total = last.rows.reduce((sum, row) => sum + row[spread].reduce((part, it) => part + it.count, 0), 0);
  await page.locator('#view-histogram').click();
  const counts = await page.locator('.numbers tbody td:nth-child(2)').allTextContents();
  checkEqual(counts.reduce((sum, it) => sum + whole(it), 0), total, 'the sum of the buckets');
  await page.locator('#view-time').click();
  await page.locator('.uplot').waitFor();
  const legend = await page.locator('.series li').allTextContents();
  const busiest = last.rows[0];
  check(legend.some((it) => it.startsWith(busiest[0]) && whole(it.slice(busiest[0].length)) === busiest[1]), `the line of ${busiest[0]}: ${legend}`);
  await page.locator('#view-heat').click();
  checkEqual((await gridOf(page)).map((row) => row[1]), last.rows.map((row) => String(row[1])), 'the table under the cursor');
  await page.locator('#view-bars').click();
  const label = await page.locator('canvas').getAttribute('aria-label');
  check(whole(label.split(busiest[0])[1].split(',')[0]) === busiest[1], `the bar of ${busiest[0]}: ${label}`);
  await page.locator('#view-flame').click();
  check((await page.locator('.empty').textContent()).includes('Group by e.ustack'), 'an impossible view says what would help');
  await page.locator('#view-table').click();
}

async function flame(world) {
  const { page, ui } = world;
  const id = await run(page, kStacks);
  await until(async () => intervalsOf(await linesOf(ui, id)).intervals.length >= 2, 'two intervals');
  await stopped(page, id);
  const { intervals } = intervalsOf(await linesOf(ui, id));
  const last = intervals[intervals.length - 1];
  const total = last.rows.reduce((sum, row) => sum + row[1], 0);
  await page.locator('#view-flame').click();
  await page.locator('.functions tbody tr').first().waitFor();
  const selfs = await page.locator('.functions tbody td:nth-child(3)').allTextContents();
  checkEqual(selfs.reduce((sum, it) => sum + whole(it), 0), total, 'the sum of what functions take themselves');
  await page.fill('#search-flame', 'zmalloc');
  const share = Number(await page.locator('[data-share]').getAttribute('data-share'));
  checkEqual(Math.round(share * 1000), 1000, 'the share of a function that is in each stack');
  await page.fill('#search-flame', '');
}

async function same(world) {
  const { page, ui } = world;
  const { id } = await ended(world);
  await page.locator('.card', { hasText: 'Command' }).first().locator('button', { hasText: 'Open' }).click();
  await page.locator('#view-table').click();
  const before = await gridOf(page);
  await page.evaluate(() => new Promise((go) => setTimeout(go, 400)));
  await page.reload();
  await until(async () => (await page.locator('.grid tbody tr:not(.filler)').count()) === before.length, 'the rows after a reload');
  checkEqual(await gridOf(page), before, `${id} after a reload`);
  check((await page.locator('.cm-content').textContent()).includes('redis-server!*Command'), 'the query after a reload');
  void ui;
}

async function fix(world) {
  const { page } = world;
  const cards = await page.locator('.card').count();
  await write(page, 'from c in retrun("redis-server!*Command") group by c.function select c.function, count() every 1s');
  const button = page.locator('.status .fix');
  await button.waitFor();
  check(await page.locator('.card').count() === cards, 'an error in the editor hides no session');
  await button.click();
  await until(async () => (await page.locator('.status').textContent()).includes('no errors'), 'no errors after the fix');
  check((await page.locator('.cm-content').textContent()).includes('return("redis'), 'the fixed word');
}

async function tenTabs(world) {
  const { page, ui, context } = world;
  const { id, intervals } = await ended(world);
  const pages = await Promise.all(Array.from({ length: 9 }, () => openPage(context, `${ui.origin}/#s=${id}&view=table`)));
  const rows = intervals[intervals.length - 1].rows.length;
  for (const one of pages) await until(async () => (await one.locator('.grid tbody tr:not(.filler)').count()) === rows, 'the rows in a tenth tab');
  const port = new URL(ui.origin).port;
  const held = spawnSync('ss', ['-Htn', 'state', 'established', `( sport = :${port} )`]).stdout?.toString().trim().split('\n').length ?? 0;
  check(held <= 6, `${held} connections for ten tabs`);
  await Promise.all(pages.map((it) => it.close()));
  await page.bringToFront();
}

async function killed(world) {
  const { page, machine } = world;
  const other = await machine.redis(false);
  await page.locator('.chips button').first().click();
  await page.locator('.section .section-action button').click();
  await chooseProcess(page, other.pid);
  await write(page, 'from c in return("redis-server!serverCron") select c.time, c.elapsed');
  const before = await page.locator('.card').count();
  await page.keyboard.press('Control+Enter');
  await until(async () => (await page.locator('.card').count()) > before, 'a session');
  await until(async () => (await page.locator('.grid tbody tr:not(.filler)').count()) > 0, 'events');
  process.kill(other.pid, 'SIGKILL');
  await until(async () => (await page.locator('.card.chosen').textContent()).includes('ended'), 'the end after the target is killed');
  check((await page.locator('.grid tbody tr:not(.filler)').count()) > 0, 'what was seen before stays');
  check((await page.locator('.losses .word').getAttribute('data-word')) !== null, 'the loss bar says what it lacks');
}

async function exports(world) {
  const { page, ui } = world;
  const { id } = await ended(world);
  const first = await api(ui, `sessions/${id}/export?to=json`);
  await page.locator('.card', { hasText: 'Command' }).last().locator('button', { hasText: 'Open' }).click();
  await page.locator('#view-heat').click();
  for (const [name, start] of [['PNG', '\x89PNG'], ['SVG', '<svg'], ['HTML', '<!doctype html>'], ...(first.ok ? [['JSON', '{']] : [])]) {
    await page.locator('.menu-place > button').click();
    const waiting = page.waitForEvent('download');
    await page.locator(`[role=menuitem]`, { hasText: name }).first().click();
    const stream = await (await waiting).createReadStream();
    const parts = [];
    for await (const part of stream) parts.push(part);
    const text = Buffer.concat(parts).toString('latin1');
    check(text.startsWith(start), `${name} begins with ${JSON.stringify(text.slice(0, 20))}`);
    check(!text.includes(ui.token), `${name} has no key`);
    if (name !== 'PNG' && name !== 'JSON') check(/exact|approximate|incomplete/.test(text), `${name} says what the answer lacks`);
  }
}

async function keysOnly(world) {
  const { context, ui, redis } = world;
  const page = await openPage(context, ui.url);
  await page.locator('.brand').click();
  await page.keyboard.press('p');
  await page.keyboard.type(String(redis.pid));
  await page.locator('.picks button', { hasText: String(redis.pid) }).first().waitFor();
  const chosen = await page.locator('.chips li', { hasText: String(redis.pid) }).count();
  for (let i = 0; i < 3 && !chosen; i++) {
    await page.keyboard.press('Tab');
    if (await page.evaluate(() => document.activeElement.hasAttribute('aria-pressed'))) break;
  }
  if (!chosen) await page.keyboard.press('Enter');
  await until(async () => (await page.locator('.chips li', { hasText: String(redis.pid) }).count()) > 0, 'a chosen process');
  await page.keyboard.press('Escape');
  await page.keyboard.press('e');
  await page.keyboard.press('Control+a');
  await page.keyboard.press('Delete');
  await page.keyboard.insertText(kQuery);
  const cards = await page.locator('.card').count();
  await page.keyboard.press('Control+Enter');
  await until(async () => (await page.locator('.card').count()) > cards && (await page.locator('.card.chosen').textContent()).includes('running'), 'a session by keys alone');
  // The first one may close what the editor offers.
  await page.keyboard.press('Escape');
  await page.keyboard.press('Escape');
  await page.keyboard.press('1');
  await until(async () => (await page.locator('.grid tbody tr:not(.filler)').count()) > 0, 'rows by keys alone');
  await page.keyboard.press('5');
  check(await page.locator('#view-heat').getAttribute('aria-selected') === 'true', '5 shows the heat map');
  await page.keyboard.press(' ');
  check((await page.locator('.view-bar').textContent()).includes('Go on'), 'space pauses');
  await page.keyboard.press(' ');
  await page.keyboard.press('?');
  await page.locator('dialog').waitFor();
  await page.keyboard.press('Escape');
  await page.keyboard.press('g');
  await page.keyboard.press('m');
  check(await page.locator('#tab-machine').getAttribute('aria-selected') === 'true', 'g m shows the machine');
  await page.keyboard.press('g');
  await page.keyboard.press('a');
  await stopped(page, 'the last one');
  await page.close();
}

async function markup(world) {
  const { page, ui } = world;
  const text = 'select "<img src=x onerror=alert(1)>"';
  const answer = await api(ui, 'sessions', { method: 'POST', body: JSON.stringify({ text, language: 'query', targets: [{ pid: world.redis.pid }], options: {} }) });
  if (answer.ok) await until(async () => (await page.locator('.card').first().textContent()).includes('<img src=x'), 'a text with markup as text');
  checkEqual(await page.locator('.card img, .grid img').count(), 0, 'elements that traced text made');
}

export const cases = [
  ['a table shows the rows of the stream, of each interval', table],
  ['each view shows the numbers of the stream', views],
  ['a flame graph has all samples', flame],
  ['a reload shows the same', same],
  ['an error is mended by its fix, and hides no session', fix],
  ['ten tabs share one stream', tenTabs],
  ['a killed target ends its session, and its rows stay', killed],
  ['pictures and files leave the page with what the answer lacks', exports],
  ['all is done by keys', keysOnly],
  ['markup in a text stays text', markup],
];
