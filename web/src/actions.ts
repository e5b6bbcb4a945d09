// SPDX-License-Identifier: Apache-2.0
// What buttons and keys do.
import { ApiError, post, remove, type Explained, type SessionInfo, type Target } from './api';
import { store } from './model/store';
import { applyTheme, change, say, shownTheme, ui, type Theme } from './ui';

function told(error: unknown): void {
  if (error instanceof ApiError && error.status === 401) change({ asksToken: true });
  const message = error instanceof Error ? error.message : String(error);
  say(error instanceof ApiError && error.fix ? `${message}; ${error.fix}` : message, true);
}

export async function run(): Promise<void> {
  if (ui.text.trim() === '') return say('write a query first, or take an example on the left', true);
  const options = {
    ...(ui.seconds.trim() ? { for: ui.seconds.trim() } : {}),
    ...(ui.overhead.trim() ? { max_overhead: ui.overhead.trim() } : {}),
  };
  try {
    const info = await post<SessionInfo>('sessions', {
      text: ui.text, language: ui.language, targets: ui.targets, options,
    });
    store.know(info);
    change({ session: info.id, table: null, at: null, measure: null, key: null, paused: false, notice: null,
             ...(ui.view === 'explain' ? { view: 'table' as const } : {}) });
  } catch (error) {
    told(error);
  }
}

export async function stop(id: string): Promise<void> {
  try {
    await remove(`sessions/${id}`);
    await store.refresh();
  } catch (error) {
    told(error);
  }
}

export function open(id: string): void {
  const info = store.sessions.get(id)?.info;
  change({ tab: 'ask', session: id, table: null, at: null, measure: null, key: null, paused: false,
           ...(info ? { text: info.text.trimEnd(), language: info.language, targets: info.targets } : {}) });
}

export async function explain(): Promise<void> {
  const question = ui.text;
  change({ view: 'explain', explained: { question } });
  try {
    const answer = await post<Explained>('explain', {
      text: question, language: ui.language, targets: ui.targets,
    });
    change({ explained: { question, answer } });
  } catch (error) {
    change({ explained: { question, error: error instanceof Error ? error.message : String(error) } });
  }
}

export function pause(): void {
  change({ paused: !ui.paused });
}

export function turnTheme(): void {
  const next: Theme = shownTheme() === 'dark' ? 'light' : 'dark';
  change({ theme: next });
  applyTheme();
  change({});
}

export function targetName(target: Target): string {
  if ('pid' in target) return `pid ${target.pid}`;
  if ('name' in target) return target.name;
  return target.command.join(' ');
}

/** One interval back or on; behind the newest one the view follows again. */
export function step(by: number): void {
  const session = ui.session ? store.sessions.get(ui.session) : null;
  const table = session ? (ui.table !== null ? session.tables.get(ui.table) : session.table) : null;
  if (!table || table.intervals.length === 0) return;
  const numbers = table.intervals.map((it) => it.number);
  const here = ui.at === null ? numbers.length - 1 : numbers.indexOf(ui.at);
  const next = Math.max(0, here + by);
  change({ at: next >= numbers.length - 1 ? null : numbers[next]! });
}
