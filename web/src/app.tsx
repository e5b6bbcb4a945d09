// SPDX-License-Identifier: Apache-2.0
// The frame of the page: tabs, the machine's name, the theme; dialogs above all.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { turnTheme } from './actions';
import { get, type Machine as MachineFacts } from './api';
import { AskToken } from './parts/ask_token';
import { Help } from './parts/help';
import { store, useStore } from './model/store';
import { Ask } from './pages/ask';
import { Cluster } from './pages/cluster';
import { Machine } from './pages/machine';
import { Recorder } from './pages/recorder';
import { Sessions } from './pages/sessions';
import { change, shownTheme, useUi, type Tab } from './ui';

const kTabs: [Tab, string][] = [['ask', 'Ask'], ['sessions', 'Sessions'], ['recorder', 'Recorder'],
                                ['cluster', 'Cluster'], ['machine', 'Machine']];

const kPages: Record<Tab, () => JSX.Element> = {
  ask: Ask, sessions: Sessions, recorder: Recorder, cluster: Cluster, machine: Machine,
};

function moveTab(event: KeyboardEvent, here: Tab): void {
  const by = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
  if (!by) return;
  const at = kTabs.findIndex(([tab]) => tab === here);
  const next = kTabs[(at + by + kTabs.length) % kTabs.length]![0];
  change({ tab: next });
  document.getElementById(`tab-${next}`)?.focus();
}

function Link(): JSX.Element {
  useStore();
  if (store.link === 'open') return <span class="link-state"><i class="dot good" /> connected</span>;
  if (store.link === 'unauthorized') return <span class="link-state bad">✕ no access</span>;
  return <span class="link-state warn">○ connecting…</span>;
}

function Facts(): JSX.Element | null {
  const [machine, setMachine] = useState<MachineFacts | null>(null);
  const { asksToken } = useUi();
  useEffect(() => {
    if (!asksToken) get<MachineFacts>('machine').then(setMachine, () => {});
  }, [asksToken]);
  if (!machine) return null;
  return <span class="facts" title={`clew ${machine.clew}`}>{machine.host} · as {machine.user}</span>;
}

function Tabs(): JSX.Element {
  const { tab } = useUi();
  useStore();
  let running = 0;
  store.sessions.forEach((it) => { if (it.state !== 'ended') running++; });
  return (
    <div class="tabs" role="tablist" aria-label="Pages">
      {kTabs.map(([id, name]) => (
        <button key={id} id={`tab-${id}`} role="tab" aria-selected={tab === id} aria-controls="page"
          tabIndex={tab === id ? 0 : -1} onClick={() => change({ tab: id })}
          onKeyDown={(event) => moveTab(event, id)}>
          {name}
          {id === 'sessions' && running > 0 && <span class="badge" aria-label={`${running} running`}>{running}</span>}
        </button>
      ))}
    </div>
  );
}

function Notice(): JSX.Element | null {
  const { notice } = useUi();
  useEffect(() => {
    if (!notice || notice.bad) return undefined;
    const timer = setTimeout(() => change({ notice: null }), 4000);
    return () => clearTimeout(timer);
  }, [notice]);
  return (
    <div class="notice-place" role="status" aria-live="polite">
      {notice && (
        <div class={`notice ${notice.bad ? 'bad' : ''}`}>
          <span>{notice.bad ? '✕ ' : '✓ '}{notice.text}</span>
          <button class="plain" onClick={() => change({ notice: null })} aria-label="Close the message">✕</button>
        </div>
      )}
    </div>
  );
}

export function App(): JSX.Element {
  const { tab, help, asksToken } = useUi();
  const Page = kPages[tab];
  const theme = shownTheme();
  return (
    <div class="app">
      <header class="top">
        <h1 class="brand"><img src="/icon.svg" alt="" width="20" height="20" />Clew</h1>
        <Tabs />
        <span class="space" />
        <Link />
        <Facts />
        <button class="plain" onClick={turnTheme} title="Light or dark"
          aria-label={`Change to the ${theme === 'dark' ? 'light' : 'dark'} theme`}>{theme === 'dark' ? '☀' : '☾'}</button>
        <button class="plain" onClick={() => change({ help: true })} title="Keys (?)" aria-label="Show the keys">?</button>
      </header>
      <main><div id="page" role="tabpanel" aria-labelledby={`tab-${tab}`}><Page /></div></main>
      <Notice />
      {help && <Help />}
      {asksToken && <AskToken />}
    </div>
  );
}
