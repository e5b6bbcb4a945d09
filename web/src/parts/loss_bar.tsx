// SPDX-License-Identifier: Apache-2.0
// What an answer lacks, in each view: the first word says it all, the rest says why.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { count, percent } from '../format';
import type { Session } from '../model/session';
import { verdictOf, type Verdict, type Word } from '../model/verdict';

const kMarks: Record<Word, string> = {
  'exact': '✓', 'exact where traced': '✓', 'approximate': '≈', 'incomplete': '▲', 'no answer': '–',
};

export function wordClass(word: Word): string {
  if (word === 'incomplete') return 'warn';
  if (word === 'no answer') return 'muted';
  return word === 'approximate' ? 'about' : 'good';
}

export function lossText(verdict: Verdict): string {
  return `${verdict.word} · missed ${count(verdict.missed)} · dropped ${count(verdict.dropped)} · ` +
         `lost ${count(verdict.lost)} · refused ${count(verdict.refused)}`;
}

function costOf(session: Session): string {
  const losses = session.losses;
  const parts: string[] = [];
  if (losses?.cost?.share !== undefined) parts.push(`${percent(losses.cost.share)} of CPU time in probes`);
  if (losses?.sites) parts.push(`${count(losses.sites)} ${losses.sites === 1 ? 'site' : 'sites'}`);
  if (losses?.attach_ms) parts.push(`armed in ${losses.attach_ms.toFixed(0)} ms`);
  if (losses?.stopped_ms) parts.push(`stopped ${losses.stopped_ms.toFixed(1)} ms`);
  return parts.join(' · ');
}

function Part(props: { name: string; value: number }): JSX.Element {
  return <span class={`loss-part ${props.value > 0 ? 'some' : ''}`}>{props.name} <b>{count(props.value)}</b></span>;
}

export function LossBar({ session }: { session: Session | null }): JSX.Element {
  const [open, setOpen] = useState(false);
  if (!session) {
    return <footer class="losses"><span class="muted">– no session: what an answer lacks is shown here</span></footer>;
  }
  const verdict = verdictOf(session);
  return (
    <footer class="losses" aria-label="What the answer lacks">
      {open && (
        <ul class="why">{verdict.why.slice(0, 200).map((it) => <li key={it}>{it}</li>)}</ul>
      )}
      <div class="losses-line">
        <b class={`word ${wordClass(verdict.word)}`} data-word={verdict.word}>{kMarks[verdict.word]} {verdict.word}</b>
        <Part name="missed" value={verdict.missed} />
        <Part name="dropped" value={verdict.dropped} />
        <Part name="lost" value={verdict.lost} />
        <Part name="refused" value={verdict.refused} />
        {verdict.why.length > 0 && (
          <button class="plain why-button" aria-expanded={open} onClick={() => setOpen(!open)}>why</button>
        )}
        <span class="space" />
        <span class="muted cost" title={costOf(session)}>{costOf(session)}</span>
      </div>
    </footer>
  );
}
