// SPDX-License-Identifier: Apache-2.0
// The recorder: a program that crashes is recorded, and its snap is walked back from the fault.
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { api, check, checkEqual, until } from './harness.mjs';

const kProgram = `#include <string.h>
static int length_of(const char *text) {
  int n = 0;
  for (; *text; text++)
    n++;
  return n;
}
static int total(int count, const char *last) {
  int sum = 0;
  for (int i = 0; i < count; i++)
    sum += length_of(i + 1 == count ? last : "by hand");
  return sum;
}
int main(int count, char **words) {
  return total(count + 5, count > 5 ? words[0] : NULL);
}
`;

async function fromTheFault(world) {
  const { page, machine, ui, clew } = world;
  if ((await api(ui, 'snaps')).status === 404) return 'this server has no snaps';
  const source = join(machine.folder, 'orders.c');
  const program = join(machine.folder, 'orders');
  writeFileSync(source, kProgram);
  checkEqual(spawnSync('gcc', ['-g', '-O1', '-fno-inline', '-o', program, source]).status, 0, 'the compiler');
  spawnSync(clew, ['record', '-o', join(machine.folder, 'snaps'), '--', program], { timeout: 60_000 });
  await page.locator('#tab-recorder').click();
  await page.locator('.name-cell button', { hasText: 'orders' }).first().click();
  await page.locator('.player').waitFor();
  const place = page.locator('.player-place');
  check((await place.textContent()).includes('orders.c:4'), `it starts at the fault: ${await place.textContent()}`);
  check((await page.locator('.player').textContent()).includes('SIGSEGV'), 'the signal');
  await until(async () => (await page.locator('.source tr[aria-current=step] .code').textContent())?.includes('*text'), 'the line of the fault in its source');
  const last = Number(await place.locator('b').getAttribute('data-step'));
  await page.keyboard.press('Shift+F10');
  checkEqual(Number(await place.locator('b').getAttribute('data-step')), last - 1, 'a step back');
  await page.keyboard.press('Shift+F12');
  check((await place.textContent()).includes('total'), `out, backwards: ${await place.textContent()}`);
  await page.keyboard.press('End');
  checkEqual(Number(await place.locator('b').getAttribute('data-step')), last, 'back at the fault');
  if (world.shots) await page.screenshot({ path: `${world.shots}/snap-dark-1440.png` });
  await page.locator('button', { hasText: 'Snaps' }).click();
  await page.locator('#tab-ask').click();
}

export const cases = [['a crash is walked back from its fault', fromTheFault]];
