// SPDX-License-Identifier: Apache-2.0
// Machine: what clew doctor finds, of the machine and of one process.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { get, type Check, type Machine as Facts } from '../api';
import { Empty } from '../parts/empty';
import { useUi } from '../ui';

const kMarks: Record<string, [string, string]> = {
  ok: ['✓', 'good'], note: ['○', 'muted'], refused: ['✕', 'bad'], no: ['✕', 'bad'], bad: ['✕', 'bad'], warning: ['▲', 'warn'],
};

function Line({ it }: { it: Check }): JSX.Element {
  const [mark, tone] = kMarks[it.verdict] ?? ['▲', 'warn'];
  return (
    <tr>
      <td class={tone}>{mark} {it.verdict}</td>
      <th scope="row">{it.check.replaceAll('-', ' ')}</th>
      <td class="wraps">{it.detail}{it.refused && <div class="muted">not possible: {it.refused}</div>}{it.to_do && <div><b>to do:</b> {it.to_do}</div>}</td>
    </tr>
  );
}

export function Checks({ checks }: { checks: Check[] }): JSX.Element {
  const bad = (it: Check): number => (it.verdict === 'ok' ? 2 : it.verdict === 'note' ? 1 : 0);
  const sorted = [...checks].sort((a, b) => bad(a) - bad(b));
  return (
    <table class="numbers checks"><thead><tr><th scope="col">verdict</th><th scope="col">check</th><th scope="col">what was found</th></tr></thead>
      <tbody>{sorted.map((it, i) => <Line key={i} it={it} />)}</tbody></table>
  );
}

export function Machine(): JSX.Element {
  const [facts, setFacts] = useState<Facts | null>(null);
  const [error, setError] = useState('');
  const [pid, setPid] = useState('');
  const [asked, setAsked] = useState('');
  const { asksToken } = useUi();
  useEffect(() => {
    if (asksToken) return;
    setFacts(null);
    get<Facts>(asked ? `machine?pid=${asked}` : 'machine').then(
      (it) => { setFacts(it); setError(''); }, (it: Error) => setError(it.message));
  }, [asked, asksToken]);
  return (
    <div class="page">
      <div class="page-head">
        <h2>{asked ? `Can process ${asked} be traced?` : 'Can this machine be traced?'}</h2>
        {facts && <span class="muted">clew {facts.clew} · {facts.host} · as {facts.user} · commands {facts.commands_allowed ? 'may' : 'may not'} be started from this page</span>}
        <span class="space" />
        <form onSubmit={(event) => { event.preventDefault(); setAsked(pid.replace(/\D/g, '')); }}>
          <input aria-label="Process" inputMode="numeric" placeholder="pid" value={pid} size={8} onInput={(event) => setPid(event.currentTarget.value)} />
          <button type="submit">Check this process</button>
        </form>
        {asked && <button onClick={() => { setAsked(''); setPid(''); }}>The machine</button>}
      </div>
      {error ? <Empty title="The checks are not there"><p>{error}</p></Empty> : facts ? <Checks checks={facts.checks} /> : <Empty title="Checking…" />}
    </div>
  );
}
