// SPDX-License-Identifier: Apache-2.0
// The distribution of one row, or of all rows together: equal buckets are added, which is exact.
import type { JSX } from 'preact';
import { Canvas, type Draw } from '../draw/canvas';
import { colours } from '../draw/colours';
import { usePicture } from '../draw/picture';
import { bucketLabel, count, percent, short } from '../format';
import { bucketsOf, filled, slotOf, type Slot } from '../model/buckets';
import type { Shown } from '../model/shown';
import { Empty } from '../parts/empty';
import type { Column } from '../stream/lines';
import { useUi } from '../ui';
import { KeyChoice, keyOf, MeasureChoice, measureOf } from './choose';

const isHistogram = (column: Column): boolean => column.type === 'histogram';
const kHeight = 300;
const kFoot = 34;
const kLeft = 64;

interface Sum { slot: Slot; count: number }

export function sumsOf(shown: Shown, column: number, key: string | null): Sum[] {
  const slots = new Map<string, Slot>();
  const counts = new Map<string, number>();
  for (const row of shown.rows) {
    if (key !== null && keyOf(row, shown.table) !== key) continue;
    for (const bucket of bucketsOf(row[column])) {
      const slot = slotOf(bucket);
      slots.set(slot.key, slot);
      counts.set(slot.key, (counts.get(slot.key) ?? 0) + bucket.count);
    }
  }
  return filled([...slots.values()]).map((slot) => ({ slot, count: counts.get(slot.key) ?? 0 }));
}

function drawer(sums: Sum[], unit: string | undefined): Draw {
  return (surface, width, height) => {
    const ink = colours();
    const most = Math.max(1, ...sums.map((it) => it.count));
    const base = height - kFoot;
    const wide = Math.min(90, (width - kLeft) / sums.length);
    for (let i = 0; i <= 4; i++) {
      const y = 10 + (base - 10) * (1 - i / 4);
      surface.rect(kLeft, y, width - kLeft, 1, ink.line);
      surface.text(kLeft - 8, y, short(Math.round(most * i / 4)), { fill: ink.muted, align: 'right' });
    }
    const every = Math.ceil(66 / wide);
    sums.forEach((it, i) => {
      const high = (base - 10) * it.count / most;
      const x = kLeft + i * wide;
      if (it.count > 0) surface.rect(x + 2, base - Math.max(1, high), Math.max(1, wide - 4), Math.max(1, high), ink.accent);
      if (i % every === 0) surface.text(x, base + 16, bucketLabel(it.slot.bucket, unit), { fill: ink.muted });
    });
  };
}

export function Histogram({ shown }: { shown: Shown }): JSX.Element {
  const { measure, key } = useUi();
  const index = measureOf(shown.table, measure, isHistogram);
  const column = shown.table.columns[index]!;
  const sums = sumsOf(shown, index, key);
  const total = sums.reduce((sum, it) => sum + it.count, 0);
  const draw = drawer(sums, column.unit);
  usePicture(draw, kHeight);
  return (
    <div class="scrolls">
      <div class="chart-head"><MeasureChoice table={shown.table} fits={isHistogram} chosen={index} /><KeyChoice shown={shown} all="all rows together" />
        <span class="muted">{count(total)} values</span></div>
      {sums.length === 0 ? <Empty title="No value in this interval"><p>Bars appear when the traced functions run.</p></Empty> : (
        <>
          <Canvas draw={draw} height={kHeight} label={`Distribution of ${column.name}; the table below has its numbers`} />
          <table class="numbers">
            <thead><tr><th scope="col" class="right">from</th><th scope="col" class="right">count</th><th scope="col" class="right">share</th><th scope="col" class="right">up to here</th></tr></thead>
            <tbody>{rowsOf(sums, total, column.unit)}</tbody>
          </table>
        </>
      )}
    </div>
  );
}

function rowsOf(sums: Sum[], total: number, unit: string | undefined): JSX.Element[] {
  let below = 0;
  return sums.map((it) => {
    below += it.count;
    return (
      <tr key={it.slot.key}><th scope="row" class="right">{bucketLabel(it.slot.bucket, unit)}</th><td class="right">{count(it.count)}</td>
        <td class="right">{percent(it.count / total)}</td><td class="right">{percent(below / total)}</td></tr>
    );
  });
}
