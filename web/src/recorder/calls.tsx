// SPDX-License-Identifier: Apache-2.0
// The call tree of a thread's steps: each stretch in a function, indented by depth.
import type { JSX } from 'preact';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { callsOf, type Step } from './snap';

const kAround = 150;

function place(step: Step): string {
  if (!step.file) return step.module;
  return `${step.file.slice(step.file.lastIndexOf('/') + 1)}:${step.line}`;
}

export function Calls(props: { steps: Step[]; at: number; faultAt: number; signal: string | null; onStep: (at: number) => void }): JSX.Element {
  const calls = useMemo(() => callsOf(props.steps), [props.steps]);
  const current = useRef<HTMLLIElement>(null);
  useEffect(() => current.current?.scrollIntoView({ block: 'nearest' }), [props.at]);
  const here = calls.findIndex((it) => it.first <= props.at && props.at <= it.last);
  const least = calls.reduce((low, it) => Math.min(low, it.depth), Infinity);
  const from = Math.max(0, here - kAround);
  const shown = calls.slice(from, here + kAround);
  return (
    <ol class="calls" tabIndex={0} aria-label="Call tree">
      {from > 0 && <li class="muted">… {from} earlier</li>}
      {shown.map((it) => {
        const mine = it === calls[here];
        const fault = it.last === props.faultAt;
        const { step } = it;
        return (
          <li key={it.first} ref={mine ? current : undefined} class={`${mine ? 'here' : ''} ${fault ? 'fault' : ''}`} aria-current={mine ? 'step' : undefined}>
            <button class="plain" onClick={() => props.onStep(it.first)} title={`${step.function} ${step.file}`}>
              <span class="call-name code" style={{ paddingLeft: `${Math.min(30, it.depth - least) * 14}px` }}>{step.function || '?'}</span>
              <span class="call-place code muted">{place(step)}</span>
              <span class="call-marks">{step.unknown && <em class="warn">? not recorded</em>}{step.inlined && <span class="muted">inlined</span>}
                {step.marks.map((mark) => <em key={mark} class="warn">? {mark}</em>)}{fault && props.signal && <b class="bad">✕ {props.signal}</b>}</span>
            </button>
          </li>
        );
      })}
    </ol>
  );
}
