// SPDX-License-Identifier: Apache-2.0
// A part of the left side that can be closed.
import type { ComponentChildren, JSX } from 'preact';
import { count as shown } from '../format';

export function Section(props: {
  title: string; count?: number | undefined; more?: boolean | undefined; closed?: boolean;
  action?: ComponentChildren; children: ComponentChildren;
}): JSX.Element {
  return (
    <details class="section" open={!props.closed}>
      <summary><h2>{props.title}</h2>
        {props.count !== undefined && <span class="muted">{shown(props.count)}{props.more ? '+' : ''}</span>}
      </summary>
      {props.action && <span class="section-action">{props.action}</span>}
      {props.children}
    </details>
  );
}
