// SPDX-License-Identifier: Apache-2.0
// What the user has chosen. It is kept in the browser, so that a reload shows the same.
import { useEffect, useReducer } from 'preact/hooks';
import type { Explained, Language, Target } from './api';

export type Tab = 'ask' | 'sessions' | 'recorder' | 'cluster' | 'machine';
export type View = 'table' | 'bars' | 'time' | 'histogram' | 'heat' | 'flame' | 'explain';
export type Theme = 'auto' | 'light' | 'dark';

export interface Saved { name: string; text: string; language: Language }

export interface Ui {
  tab: Tab;
  view: View;
  text: string;
  language: Language;
  targets: Target[];
  seconds: string;
  overhead: string;
  session: string | null;
  /** A table of the session, by its name. */
  table: string | null;
  /** The number of the interval under the cursor; null: the newest. */
  at: number | null;
  /** What charts show, by column name. */
  measure: string | null;
  /** A row's key that charts show alone. */
  key: string | null;
  paused: boolean;
  theme: Theme;
  saved: Saved[];
  explained: { question: string; answer?: Explained; error?: string } | null;
  help: boolean;
  asksToken: boolean;
  notice: { text: string; bad: boolean } | null;
}

const kKey = 'clew-ui';
const kKept: (keyof Ui)[] = ['tab', 'view', 'text', 'language', 'targets', 'seconds', 'overhead', 'session',
                             'theme', 'saved'];

const kFresh: Ui = {
  tab: 'ask', view: 'table', text: '', language: 'query', targets: [], seconds: '', overhead: '',
  session: null, table: null, at: null, measure: null, key: null, paused: false, theme: 'auto', saved: [],
  explained: null, help: false, asksToken: false, notice: null,
};

function stored(): Partial<Ui> {
  try {
    return JSON.parse(localStorage.getItem(kKey) ?? '{}') as Partial<Ui>;
  } catch {
    return {};
  }
}

/** What a shared link says, which goes before what is kept. */
function linked(): Partial<Ui> {
  const words = new URLSearchParams(location.hash.slice(1));
  const from: Partial<Ui> = {};
  if (words.has('q')) from.text = words.get('q')!;
  if (words.get('lang') === 'd' || words.get('lang') === 'query') from.language = words.get('lang') as Language;
  if (words.has('view')) from.view = words.get('view') as View;
  if (words.has('s')) from.session = words.get('s');
  try {
    if (words.has('on')) from.targets = JSON.parse(words.get('on')!) as Target[];
  } catch {
    // A damaged link names no targets.
  }
  if (Object.keys(from).length > 0) from.tab = 'ask';
  return from;
}

export const ui: Ui = { ...kFresh, ...stored(), ...linked() };
const listeners = new Set<() => void>();
let later = 0;

function keep(): void {
  later = 0;
  const kept: Record<string, unknown> = {};
  for (const key of kKept) kept[key] = ui[key];
  localStorage.setItem(kKey, JSON.stringify(kept));
}

export function change(what: Partial<Ui>): void {
  Object.assign(ui, what);
  if (!later) later = window.setTimeout(keep, 200);
  listeners.forEach((listener) => listener());
}

addEventListener('pagehide', keep);

export function useUi(): Ui {
  const [, again] = useReducer((n: number) => n + 1, 0);
  useEffect(() => {
    const listener = () => again(undefined);
    listeners.add(listener);
    return () => { listeners.delete(listener); };
  }, []);
  return ui;
}

export function say(text: string, bad = false): void {
  change({ notice: { text, bad } });
}

/** The address of what is seen, without the token. */
export function link(): string {
  const words = new URLSearchParams({ q: ui.text, lang: ui.language, view: ui.view });
  if (ui.targets.length > 0) words.set('on', JSON.stringify(ui.targets));
  if (ui.session) words.set('s', ui.session);
  return `${location.origin}/#${words.toString()}`;
}

const dark = matchMedia('(prefers-color-scheme: dark)');

export function shownTheme(): 'light' | 'dark' {
  if (ui.theme !== 'auto') return ui.theme;
  return dark.matches ? 'dark' : 'light';
}

export function applyTheme(): void {
  document.documentElement.dataset.theme = shownTheme();
}

dark.addEventListener('change', () => {
  applyTheme();
  change({});
});
