// SPDX-License-Identifier: Apache-2.0
// The SharedWorker: one stream from the server for all tabs, since browsers allow six connections to
// a host. A tab that joins first gets what the server still keeps, by a short stream of its own.
import { readOn, readOnce, type Link, type Place } from './reader';

interface Tab {
  port: MessagePort;
  /** What came while the tab was catching up; null behind that. */
  waiting: string[] | null;
}

const tabs = new Set<Tab>();
const place: Place = { n: 0 };
let token = '';
let generation = 0;
let link: Link = 'broken';
let queue: Promise<void> = Promise.resolve();

function tell(tab: Tab, lines: string): void {
  if (tab.waiting) tab.waiting.push(lines);
  else tab.port.postMessage({ lines });
}

function start(): void {
  const mine = ++generation;
  place.n = 0;
  const heard = {
    text: (lines: string) => tabs.forEach((tab) => tell(tab, lines)),
    link: (state: Link) => {
      if (mine !== generation) return;
      link = state;
      tabs.forEach((tab) => tab.port.postMessage({ link: state }));
    },
  };
  void readOn(token, place, heard, () => mine !== generation);
}

async function catchUp(tab: Tab): Promise<void> {
  const until = place.n;
  const own: Place = { n: 0 };
  const heard = { text: (lines: string) => tab.port.postMessage({ lines }), link: () => {} };
  if (until > 0) {
    await readOnce(token, own, heard, () => own.n >= until || !tabs.has(tab)).catch(() => {});
  }
  const waiting = tab.waiting ?? [];
  tab.waiting = null;
  waiting.forEach((lines) => tell(tab, lines));
}

function join(tab: Tab, given: string): void {
  const first = given !== token || link === 'unauthorized';
  tab.port.postMessage({ link });
  if (first) {
    token = given;
    tab.waiting = null;
    tabs.add(tab);
    start();
    return;
  }
  tab.waiting = [];
  tabs.add(tab);
  queue = queue.then(() => catchUp(tab));
}

(self as unknown as { onconnect: (event: MessageEvent) => void }).onconnect = (event) => {
  const tab: Tab = { port: event.ports[0]!, waiting: null };
  tab.port.onmessage = (message: MessageEvent<{ token?: string; leave?: boolean }>) => {
    if (message.data.leave) tabs.delete(tab);
    else if (message.data.token && !tabs.has(tab)) join(tab, message.data.token);
  };
};
