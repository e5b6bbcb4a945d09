// SPDX-License-Identifier: Apache-2.0
// How the query in the editor would run: what is done in the probe, the process, the machine, the root.
import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import { explain } from '../actions';
import type { Explained } from '../api';
import { Empty } from '../parts/empty';
import { ui, useUi } from '../ui';

const kTiers: [string, string][] = [['probe', 'In the probe'], ['process', 'In the process'], ['kernel', 'In the kernel'],
                                    ['node', 'On the machine'], ['root', 'At the root']];

function known(answer: Explained): [string, string, string[]][] {
  const tiers = kTiers.map(([id, name]): [string, string, string[]] =>
    [id, name, answer.tiers.filter((it) => it.tier === id).map((it) => it.what)]);
  const others = [...new Set(answer.tiers.map((it) => it.tier))].filter((id) => !kTiers.some(([one]) => one === id));
  const more = others.map((id): [string, string, string[]] => [id, id, answer.tiers.filter((it) => it.tier === id).map((it) => it.what)]);
  return [...tiers, ...more].filter(([, , lines]) => lines.length > 0);
}

function Box({ text }: { text: string }): JSX.Element {
  const [head, ...rest] = text.split(': ');
  return <li class="box">{rest.length > 0 ? <><b>{head}</b><span>{rest.join(': ')}</span></> : <span>{text}</span>}</li>;
}

function Tiers({ answer }: { answer: Explained }): JSX.Element {
  return (
    <div class="tiers">
      {known(answer).map(([id, name, lines], i) => (
        <section key={id} class={`tier tier-${id}`} aria-label={name}>
          {i > 0 && <span class="flow" aria-hidden="true">→</span>}
          <h3>{name}</h3>
          <ul>{lines.map((line) => <Box key={line} text={line} />)}</ul>
        </section>
      ))}
    </div>
  );
}

function facts(raw: Record<string, unknown>[]): JSX.Element[] {
  return raw.filter((it) => !('tier' in it)).map((it, i) => {
    const [name, value] = Object.entries(it)[0] ?? ['', ''];
    const alone = Object.keys(it).length === 1 && typeof value === 'string';
    return (
      <details key={i} class="fact" open={alone}>
        <summary>{name}{!alone && typeof value !== 'object' ? `: ${String(value)}` : ''}</summary>
        <pre>{alone ? String(value) : JSON.stringify(it, null, 2)}</pre>
      </details>
    );
  });
}

export function Explain(): JSX.Element {
  const { explained, text } = useUi();
  useEffect(() => {
    if (!ui.explained && ui.text.trim()) void explain();
  }, []);
  if (text.trim() === '' && !explained) return <Empty title="Nothing to explain"><p>Write a query above: this view shows what would be done where, and changes no process.</p></Empty>;
  if (!explained) return <Empty title="Explaining…" />;
  const error = explained.error ?? (explained.answer?.error ? (typeof explained.answer.error === 'string' ? explained.answer.error : explained.answer.error.message) : undefined);
  return (
    <div class="scrolls explain">
      {explained.question !== text && <p class="hint">The query has changed since. <button onClick={() => void explain()}>Explain it again</button></p>}
      {error && <p class="bad message">✕ {error}</p>}
      {!error && !explained.answer && <Empty title="Explaining…" />}
      {explained.answer && <Tiers answer={explained.answer} />}
      {explained.answer?.raw && facts(explained.answer.raw)}
    </div>
  );
}
