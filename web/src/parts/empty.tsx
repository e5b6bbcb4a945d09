// SPDX-License-Identifier: Apache-2.0
// Where there is nothing: why, and what to do.
import type { ComponentChildren, JSX } from 'preact';

export function Empty(props: { title: string; children?: ComponentChildren }): JSX.Element {
  return <div class="empty"><p class="empty-title">{props.title}</p>{props.children}</div>;
}
