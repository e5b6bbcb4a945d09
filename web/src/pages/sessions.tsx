// SPDX-License-Identifier: Apache-2.0
// All sessions in one table, and what others trace on this machine.
import type { JSX } from 'preact';
import { open, stop, targetName } from '../actions';
import { clock, count } from '../format';
import type { Session } from '../model/session';
import { store, useStore } from '../model/store';
import { verdictOf } from '../model/verdict';
import { byNewest, sessionName, useTraced, type Traced } from '../ask/session_list';
import { Empty } from '../parts/empty';
import { wordClass } from '../parts/loss_bar';
import { Sparkline } from '../parts/sparkline';
import { change } from '../ui';

function Line({ session }: { session: Session }): JSX.Element {
  const verdict = verdictOf(session);
  const over = session.state === 'ended';
  const started = session.info?.started ?? session.head?.started;
  return (
    <tr>
      <td class="code">{session.id}</td>
      <th scope="row" class="name-cell"><button class="plain code" title={session.text} onClick={() => open(session.id)}>{sessionName(session)}</button></th>
      <td class="name-cell">{(session.info?.targets ?? []).map(targetName).join(', ') || 'all processes'}</td>
      <td>{over ? '■ ended' : `● ${session.state}`}</td>
      <td class="right">{started ? clock(BigInt(started)) : '–'}</td>
      <td class="spark-cell"><Sparkline points={session.spark} /></td>
      <td class="right">{count(session.rowsSeen)}</td>
      <td class={`right ${verdict.missed ? 'warn' : ''}`}>{count(verdict.missed)}</td>
      <td class={`right ${verdict.dropped ? 'warn' : ''}`}>{count(verdict.dropped)}</td>
      <td class={`right ${verdict.lost ? 'warn' : ''}`}>{count(verdict.lost)}</td>
      <td class={wordClass(verdict.word)} title={verdict.why.slice(0, 20).join('\n')}>{verdict.word}</td>
      <td class="do"><button onClick={() => void stop(session.id)} disabled={session.state === 'stopping'}>{over ? 'Forget' : 'Stop'}</button>
        <button onClick={() => open(session.id)}>Open</button></td>
    </tr>
  );
}

function TracedLine({ it }: { it: Traced }): JSX.Element {
  const sessions = it.sessions ?? [];
  const notes = [it.recorded && 'recorded', it.residue && 'probes of a session that ended; clew detach removes them',
                 sessions.some((one) => !one.alive) && 'a tracer is gone'].filter(Boolean).join(' · ');
  return (
    <tr><th scope="row">{it.program ?? '?'}</th><td class="right">{it.pid}</td><td class="right">{count(it.sites ?? 0)}</td>
      <td class="right">{sessions.map((one) => one.tracer).join(' ') || '–'}</td><td class="wraps">{notes || '–'}</td></tr>
  );
}

export function Sessions(): JSX.Element {
  useStore();
  const traced = useTraced();
  const sessions = byNewest(store.sessions.values());
  return (
    <div class="page">
      <h2>Sessions of this server</h2>
      {sessions.length === 0 ? (
        <Empty title="No session yet"><p><button class="primary" onClick={() => change({ tab: 'ask' })}>Ask something</button></p></Empty>
      ) : (
        <table class="numbers wide">
          <thead><tr><th scope="col">id</th><th scope="col">question</th><th scope="col">where</th><th scope="col">state</th><th scope="col" class="right">started</th>
            <th scope="col" class="spark-cell">rows a second</th><th scope="col" class="right">rows</th><th scope="col" class="right">missed</th><th scope="col" class="right">dropped</th>
            <th scope="col" class="right">lost</th><th scope="col">answer</th><th scope="col"><span class="unseen">actions</span></th></tr></thead>
          <tbody>{sessions.map((it) => <Line key={it.id} session={it} />)}</tbody>
        </table>
      )}
      <h2>Traced on this machine</h2>
      {traced.length === 0 ? <p class="hint">No process has probes now, or the server may not look.</p> : (
        <table class="numbers">
          <thead><tr><th scope="col">process</th><th scope="col" class="right">pid</th><th scope="col" class="right">sites</th>
            <th scope="col" class="right">tracers</th><th scope="col">notes</th></tr></thead>
          <tbody>{traced.map((it) => <TracedLine key={it.pid} it={it} />)}</tbody>
        </table>
      )}
    </div>
  );
}
