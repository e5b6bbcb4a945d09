// SPDX-License-Identifier: Apache-2.0
// The source around the current step: lines that ran are marked, those of which nothing is known are not.
import type { JSX } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { get } from '../api';
import type { Step } from './snap';

const texts = new Map<string, string | null>();

function useSource(snap: string, file: string): string | null | undefined {
  const key = `${snap}\0${file}`;
  const [, again] = useState(0);
  useEffect(() => {
    if (!file || texts.has(key)) return;
    let over = false;
    get<{ text: string }>(`snaps/${encodeURIComponent(snap)}/source?file=${encodeURIComponent(file)}`)
      .then((it) => it.text, () => null)
      .then((text) => {
        texts.set(key, text);
        if (!over) again((n) => n + 1);
      });
    return () => { over = true; };
  }, [key]);
  return texts.get(key);
}

interface Row { number: number; text: string }

/** The file's lines, or those that the steps themselves know. */
function rowsOf(text: string | null | undefined, steps: Step[], file: string): Row[] {
  if (typeof text === 'string') return text.split('\n').map((line, i) => ({ number: i + 1, text: line }));
  const known = new Map<number, string>();
  for (const step of steps) if (step.file === file && step.line > 0 && step.text !== null) known.set(step.line, step.text);
  return [...known].sort((a, b) => a[0] - b[0]).map(([number, line]) => ({ number, text: line }));
}

const kAround = 400;

export function Source(props: { snap: string; steps: Step[]; at: number; fault: boolean; onLine: (line: number) => void }): JSX.Element {
  const step = props.steps[props.at]!;
  const text = useSource(props.snap, step.file);
  const rows = useMemo(() => rowsOf(text, props.steps, step.file), [text, props.steps, step.file]);
  const hits = useMemo(() => {
    const counts = new Map<number, number>();
    for (const it of props.steps) if (it.file === step.file && !it.unknown) counts.set(it.line, (counts.get(it.line) ?? 0) + 1);
    return counts;
  }, [props.steps, step.file]);
  const current = useRef<HTMLTableRowElement>(null);
  useEffect(() => current.current?.scrollIntoView({ block: 'nearest' }), [props.at, rows]);
  if (!step.file) {
    return <div class="empty"><p class="empty-title">{step.function || 'unknown code'}</p><p>No source is known for it{step.module ? `: ${step.module} has no debug information here` : ''}.</p></div>;
  }
  const shown = rows.filter((it) => Math.abs(it.number - step.line) <= kAround);
  return (
    <div class="source" tabIndex={0} role="region" aria-label="Source">
      <p class="source-name" title={step.file}>{step.file}{text === null && <span class="warn"> · the file is not here; these lines are known from the snap</span>}</p>
      <table><tbody>
        {shown.map((it) => {
          const here = it.number === step.line;
          const times = hits.get(it.number) ?? 0;
          return (
            <tr key={it.number} ref={here ? current : undefined} aria-current={here ? 'step' : undefined}
              class={`${here ? (props.fault ? 'here fault' : 'here') : ''} ${times ? 'ran' : 'not-known'}`} onClick={() => props.onLine(it.number)}>
              <td class="line-number">{it.number}</td><td class="line-hits" title={times ? `${times} times in what is known` : 'no record of it'}>{times ? (times > 1 ? `×${times}` : '●') : ''}</td><td class="code">{it.text || ' '}</td>
            </tr>
          );
        })}
      </tbody></table>
    </div>
  );
}
