// SPDX-License-Identifier: Apache-2.0
// The sessions at the right, the newest first; those of others below.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { open, stop, targetName } from '../actions';
import { get } from '../api';
import { clock, count, elapsedSince, short } from '../format';
import type { Session } from '../model/session';
import { store, useStore } from '../model/store';
import { verdictOf } from '../model/verdict';
import { Sparkline } from '../parts/sparkline';
import { wordClass } from '../parts/loss_bar';
import { useUi } from '../ui';

export function sessionName(session: Session): string {
  return session.text.replace(/\s+/g, ' ').trim().replace(/^from \w+ in /i, '') || session.id;
}

export function byNewest(sessions: Iterable<Session>): Session[] {
  return [...sessions].sort((a, b) => Number(b.id.replace(/\D/g, '')) - Number(a.id.replace(/\D/g, '')));
}

function when(session: Session): string {
  const started = session.info?.started ?? session.head?.started;
  if (session.state === 'ended') return started ? clock(BigInt(started)) : '';
  return elapsedSince(started);
}

function Card({ session, chosen }: { session: Session; chosen: boolean }): JSX.Element {
  const verdict = verdictOf(session);
  const over = session.state === 'ended';
  const targets = (session.info?.targets ?? []).map(targetName).join(', ');
  return (
    <li class={`card ${chosen ? 'chosen' : ''}`} aria-current={chosen}>
      <div class="card-head">
        <button class="card-name" title={session.text} onClick={() => open(session.id)}>{sessionName(session)}</button>
        <span class="muted">{when(session)}</span>
      </div>
      <div class="muted card-where" title={targets}>{over ? '■ ended' : `● ${session.state}`}{targets && ` · ${targets}`}</div>
      {session.spark.length > 1 && <Sparkline points={session.spark} />}
      <dl class="card-facts">
        <div><dt>rows</dt><dd>{short(session.rowsSeen)}</dd></div>
        <div><dt>missed</dt><dd class={verdict.missed ? 'warn' : ''}>{short(verdict.missed)}</dd></div>
        <div><dt>dropped</dt><dd class={verdict.dropped ? 'warn' : ''}>{short(verdict.dropped)}</dd></div>
      </dl>
      <div class="card-do">
        <b class={`card-word ${wordClass(verdict.word)}`}>{verdict.word}</b>
        <button onClick={() => void stop(session.id)} disabled={session.state === 'stopping'}>{over ? 'Forget' : 'Stop'}</button>
        <button onClick={() => open(session.id)}>Open</button>
      </div>
    </li>
  );
}

export interface Traced {
  pid?: number;
  program?: string;
  sites?: number;
  recorded?: boolean;
  residue?: boolean;
  sessions?: { alive: boolean; tracer: number }[];
}

/** What others trace on this machine; empty where the server cannot say. */
export function useTraced(): Traced[] {
  const [traced, setTraced] = useState<Traced[]>([]);
  const { asksToken } = useUi();
  useEffect(() => {
    if (asksToken) return undefined;
    let over = false;
    const ask = (): void => {
      if (document.hidden) return;
      get<{ traced: Traced[] }>('traced').then((it) => { if (!over) setTraced(it.traced); }, () => {});
    };
    ask();
    const timer = setInterval(ask, 10_000);
    return () => { over = true; clearInterval(timer); };
  }, [asksToken]);
  return traced;
}

export function tracedText(it: Traced): string {
  const name = it.program ?? '';
  return [name, it.pid ?? ''].filter((part) => part !== '').join(' ');
}

export function SessionList(): JSX.Element {
  useStore();
  const ui = useUi();
  const traced = useTraced();
  const sessions = byNewest(store.sessions.values());
  return (
    <>
      <h2>Sessions {sessions.length > 0 && <span class="muted">{count(sessions.length)}</span>}</h2>
      {sessions.length === 0 && <p class="hint">None yet. What you run appears here, and goes on when you close this page.</p>}
      <ul class="cards">{sessions.map((it) => <Card key={it.id} session={it} chosen={it.id === ui.session} />)}</ul>
      {traced.length > 0 && (
        <>
          <h2>Traced processes</h2>
          <ul class="lines">{traced.slice(0, 50).map((it, i) => <li key={i} title={JSON.stringify(it, null, 1)}>{tracedText(it)}</li>)}</ul>
        </>
      )}
    </>
  );
}
