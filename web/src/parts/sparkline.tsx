// SPDX-License-Identifier: Apache-2.0
// Rows in each of the last seconds.
import type { JSX } from 'preact';
import { short } from '../format';

export function Sparkline({ points }: { points: number[] }): JSX.Element {
  const most = Math.max(1, ...points);
  const line = points.map((it, i) => `${(i + 60 - points.length) * 4},${27 - (it / most) * 24}`).join(' ');
  return (
    <svg class="spark" viewBox="0 0 240 30" preserveAspectRatio="none" role="img"
      aria-label={`rows a second, now ${short(points[points.length - 1] ?? 0)}, at most ${short(most)}`}>
      <polyline points={line} />
    </svg>
  );
}
