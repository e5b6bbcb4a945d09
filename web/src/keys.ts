// SPDX-License-Identifier: Apache-2.0
// The keys of the whole page. The help dialog shows this list.
import { explain, pause, run, step, turnTheme } from './actions';
import { change, ui, type Tab, type View } from './ui';

export const kViews: [View, string][] = [
  ['table', 'Table'], ['bars', 'Bars'], ['time', 'Time'], ['histogram', 'Histogram'], ['heat', 'Heat'],
  ['flame', 'Flame'], ['explain', 'Explain'],
];

export const kKeys: [string, string][] = [
  ['?', 'these keys'],
  ['e', 'to the editor; Esc leaves it'],
  ['Ctrl Enter', 'run the query'],
  ['Ctrl Shift Enter', 'explain it'],
  ['Ctrl Space', 'complete, in the editor'],
  ['F8', 'to the next error, in the editor'],
  ['p', 'to the search for processes'],
  ['/', 'to the search for functions, or in a flame graph'],
  ['1 to 7', 'Table, Bars, Time, Histogram, Heat, Flame, Explain'],
  ['Space', 'pause the view, and go on'],
  ['[ and ]', 'one interval back, and on'],
  ['g then a s r c m', 'Ask, Sessions, Recorder, Cluster, Machine'],
  ['t', 'light or dark'],
  ['F10, Shift F10', 'recorder: a line on, and back'],
  ['F11, Shift F11', 'recorder: to the next call, and back to the last one'],
  ['F12, Shift F12', 'recorder: out to the caller, forwards and backwards'],
  ['Home, End', 'recorder: to the start, to the fault'],
];

const kGo: Record<string, Tab> = { a: 'ask', s: 'sessions', r: 'recorder', c: 'cluster', m: 'machine' };
const kSequenceMs = 1200;
let wentAt = 0;

function isText(target: EventTarget | null): boolean {
  const element = target as HTMLElement | null;
  if (!element?.tagName) return false;
  return /^(INPUT|TEXTAREA|SELECT)$/.test(element.tagName) || element.isContentEditable ||
         element.classList.contains('editor-host');
}

function focus(selector: string): void {
  (document.querySelector(selector) as HTMLElement | null)?.focus();
}

const kPlain: Record<string, () => void> = {
  '?': () => change({ help: true }),
  'e': () => {
    change({ tab: 'ask' });
    document.dispatchEvent(new Event('clew-editor'));
  },
  'p': () => focus('#search-processes'),
  '/': () => focus(ui.view === 'flame' && document.querySelector('#search-flame') ? '#search-flame' : '#search-functions'),
  '[': () => step(-1),
  ']': () => step(1),
  't': turnTheme,
  'g': () => { wentAt = performance.now(); },
};

function leave(event: KeyboardEvent): void {
  if (ui.help) return change({ help: false });
  if (!isText(event.target) || event.defaultPrevented) return;
  const active = document.activeElement as HTMLElement | null;
  ((active?.shadowRoot?.activeElement as HTMLElement | null) ?? active)?.blur();
}

function plain(event: KeyboardEvent): boolean {
  if (performance.now() - wentAt < kSequenceMs && kGo[event.key]) {
    wentAt = 0;
    change({ tab: kGo[event.key]! });
    return true;
  }
  const view = ui.tab === 'ask' ? kViews[Number(event.key) - 1] : undefined;
  if (view) {
    if (view[0] === 'explain') void explain();
    else change({ view: view[0] });
    return true;
  }
  if (event.key === ' ' && !/^(BUTTON|A|SUMMARY)$/.test((event.target as HTMLElement).tagName)) {
    pause();
    return true;
  }
  const action = kPlain[event.key];
  action?.();
  return action !== undefined;
}

export function listenToKeys(): void {
  addEventListener('keydown', (event) => {
    if (event.key === 'Escape') return leave(event);
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey) && ui.tab === 'ask') {
      if (event.defaultPrevented) return;
      event.preventDefault();
      void (event.shiftKey ? explain() : run());
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || isText(event.target) || ui.help) return;
    if (plain(event)) event.preventDefault();
  });
}
