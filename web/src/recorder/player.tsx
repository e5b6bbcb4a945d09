// SPDX-License-Identifier: Apache-2.0
// One snap on the whole screen: source, calls and lanes in step, from the fault backwards.
import type { JSX } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { clock, count, duration } from '../format';
import { Calls } from './calls';
import { Lanes } from './lanes';
import { moved, stepsOf, type Move, type Snap, type Step, type Thread } from './snap';
import { Source } from './source';

const kSignals: Record<number, string> = { 4: 'SIGILL', 5: 'SIGTRAP', 6: 'SIGABRT', 7: 'SIGBUS', 8: 'SIGFPE', 11: 'SIGSEGV', 15: 'SIGTERM', 31: 'SIGSYS' };

const kButtons: [Move, string, string][] = [
  ['start', '⇤ Start', 'Home'], ['out-back', '‹ Out', '⇧F12'], ['into-back', '‹ Into', '⇧F11'], ['hit-back', '‹ Hit', '⇧H'], ['back', '‹ Back', '⇧F10'],
  ['on', 'Step ›', 'F10'], ['hit', 'Hit ›', 'H'], ['into', 'Into ›', 'F11'], ['out', 'Out ›', 'F12'], ['end', 'Fault ⇥', 'End'],
];

const kMoves: Record<string, Move> = {
  'F10': 'on', 'Shift+F10': 'back', 'F11': 'into', 'Shift+F11': 'into-back', 'F12': 'out', 'Shift+F12': 'out-back',
  'h': 'hit', 'Shift+H': 'hit-back', 'Home': 'start', 'End': 'end', 'ArrowRight': 'on', 'ArrowLeft': 'back',
};

function signalOf(snap: Snap): string | null {
  return snap.signal ? kSignals[snap.signal] ?? `signal ${snap.signal}` : null;
}

function Incomplete({ thread, snap }: { thread: Thread; snap: Snap }): JSX.Element {
  const parts = [thread.gaps && `${count(thread.gaps)} gaps`, thread.uncertain && `${count(thread.uncertain)} uncertain places`,
                 thread.violations && `${count(thread.violations)} records make no sense`, ...snap.problems.map((it) => (typeof it === 'string' ? it : JSON.stringify(it)))].filter(Boolean) as string[];
  const none = thread.records === 0;
  const word = none ? 'unknown' : parts.length > 0 ? 'incomplete' : 'exact';
  return (
    <footer class="losses"><div class="losses-line"><b class={`word ${word === 'exact' ? 'good' : 'warn'}`} data-word={word}>{word === 'exact' ? '✓' : '▲'} {word}</b>
      <span>{none ? 'nothing is recorded of this thread' : parts.length > 0 ? parts.join(' · ') : 'no gap in what this thread\'s records say'}</span>
      <span class="space" /><span class="muted">{count(thread.records)} records</span></div></footer>
  );
}

function useMoves(steps: Step[], set: (move: Move) => void): void {
  useEffect(() => {
    const listen = (event: KeyboardEvent): void => {
      if (/^(INPUT|SELECT|TEXTAREA)$/.test((event.target as HTMLElement).tagName) || event.ctrlKey || event.altKey || event.metaKey) return;
      const move = kMoves[`${event.shiftKey ? 'Shift+' : ''}${event.key}`];
      if (!move) return;
      set(move);
      event.preventDefault();
    };
    addEventListener('keydown', listen);
    return () => removeEventListener('keydown', listen);
  }, [steps]);
}

export function Player({ name, snap, onClose }: { name: string; snap: Snap; onClose: () => void }): JSX.Element {
  const lanes = useMemo(() => snap.threads.map((thread) => ({ thread, steps: stepsOf(thread) })), [snap]);
  const first = lanes.find((it) => it.thread.thread === snap.thread) ?? lanes[0]!;
  const [chosen, setChosen] = useState(first.thread.thread);
  const lane = lanes.find((it) => it.thread.thread === chosen) ?? first;
  const { steps } = lane;
  const [at, setAt] = useState(steps.length - 1);
  useMoves(steps, (move) => setAt((now) => moved(steps, now, move)));
  const step = steps[at];
  const signal = signalOf(snap);
  const faultAt = lane.thread.got_signal ? steps.length - 1 : -1;
  const choose = (thread: number): void => {
    setChosen(thread);
    setAt((lanes.find((it) => it.thread.thread === thread)?.steps.length ?? 1) - 1);
  };
  const hit = (line: number): void => {
    const file = step?.file;
    const back = steps.findLastIndex((it, i) => i < at && it.file === file && it.line === line);
    const found = back >= 0 ? back : steps.findIndex((it) => it.file === file && it.line === line);
    if (found >= 0) setAt(found);
  };
  return (
    <div class="player">
      <div class="player-head">
        <button onClick={onClose}>‹ Snaps</button>
        <b class="player-name" title={name}>{snap.command.join(' ') || name} · {snap.process}</b>
        {signal && <span class="bad">✕ {signal}</span>}
        <span class="muted">{clock(BigInt(snap.time_ns), 3)}</span>
        <span class="space" />
        <span class="moves" role="toolbar" aria-label="Steps">
          {kButtons.map(([move, label, key]) => (
            <button key={move} disabled={!step || moved(steps, at, move) === at} title={key} aria-keyshortcuts={key} onClick={() => setAt(moved(steps, at, move))}>
              {move === 'end' && faultAt < 0 ? 'End ⇥' : label}</button>
          ))}
        </span>
      </div>
      <p class="player-place" aria-live="polite">{step && <>step <b data-step={at}>{count(at + 1)}</b> of {count(steps.length)} · <span class="code">{step.function || '?'}</span>{step.file && <span class="code muted"> {step.file.slice(step.file.lastIndexOf('/') + 1)}:{step.line}</span>}
        {step.unknown && <span class="warn"> ? nothing recorded says how it came here</span>}
        {step.after_ns !== null && <span class="muted"> · between {duration(step.after_ns)} and {step.before_ns === null ? 'the snap' : duration(step.before_ns)}</span>}</>}</p>
      <div class="player-panes">
        {step ? <Source snap={name} steps={steps} at={at} fault={at === faultAt} onLine={hit} /> : <div class="empty"><p class="empty-title">Nothing is known of this thread</p></div>}
        {step && <Calls steps={steps} at={at} faultAt={faultAt} signal={signal} onStep={setAt} />}
      </div>
      <div class="player-lanes"><Lanes lanes={lanes} chosen={chosen} at={at} onThread={choose} /></div>
      <Incomplete thread={lane.thread} snap={snap} />
    </div>
  );
}
