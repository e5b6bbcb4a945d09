// SPDX-License-Identifier: Apache-2.0
// The functions of a flame graph by what they take themselves.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { count, number, percent } from '../format';
import { functionsOf, type FunctionSum, type Stack } from './tree';

const kRowsMax = 100;
const kLaterMs = 50;

export function FunctionTable(props: {
  stacks: Stack[]; total: number; unit: string | undefined; matches: ((name: string) => boolean) | null;
  chosen: string | null; onChoose: (name: string) => void;
}): JSX.Element {
  const [all, setAll] = useState<FunctionSum[]>([]);
  // The graph is drawn first.
  useEffect(() => {
    const timer = setTimeout(() => setAll(functionsOf(props.stacks)), kLaterMs);
    return () => clearTimeout(timer);
  }, [props.stacks]);
  const found = props.matches ? all.filter((it) => props.matches!(it.name)) : all;
  return (
    <>
      <table class="numbers functions">
        <thead><tr><th scope="col">function</th><th scope="col">module</th><th scope="col" class="right">self</th><th scope="col" class="right">%</th>
          <th scope="col" class="right">total</th><th scope="col" class="right">%</th></tr></thead>
        <tbody>
          {found.slice(0, kRowsMax).map((it) => (
            <tr key={it.name} class={it.name === props.chosen ? 'chosen' : ''}>
              <th scope="row" class="name-cell"><button class="plain code" title={it.name} onClick={() => props.onChoose(it.name)}>{it.name}</button></th>
              <td class="muted">{it.module || '–'}</td>
              <td class="right">{number(it.self, props.unit)}</td><td class="right muted">{percent(it.self / props.total)}</td>
              <td class="right">{number(it.total, props.unit)}</td><td class="right muted">{percent(it.total / props.total)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {found.length > kRowsMax && <p class="hint">… {count(found.length - kRowsMax)} more; search to narrow</p>}
    </>
  );
}
