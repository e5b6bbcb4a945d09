// SPDX-License-Identifier: Apache-2.0
// A bar for each row: its key, its number.
import type { JSX } from 'preact';
import { Canvas, type Draw } from '../draw/canvas';
import { colours } from '../draw/colours';
import { usePicture } from '../draw/picture';
import { number, numeric, percent, count } from '../format';
import type { Shown } from '../model/shown';
import { Empty } from '../parts/empty';
import { useUi } from '../ui';
import { keyOf, MeasureChoice, measureOf } from './choose';
import { isMeasure } from './fit';
import { Grid } from './table';

const kBarsMax = 40;
const kBarPixels = 24;

interface Bar { name: string; value: number; share: number }

/** Only what adds up has shares. */
const adds = (name: string): boolean => /^(count|calls|sum|hits|bytes|times|samples|n)\b/i.test(name);

function barsOf(shown: Shown, measure: number): Bar[] {
  const bars = shown.rows.flatMap((row) => {
    const value = numeric(row[measure]);
    return value === null ? [] : [{ name: keyOf(row, shown.table), value, share: 0 }];
  });
  const sum = bars.reduce((total, it) => total + it.value, 0);
  bars.forEach((it) => { it.share = sum > 0 ? it.value / sum : 0; });
  return bars.sort((a, b) => b.value - a.value);
}

function drawer(bars: Bar[], unit: string | undefined, shares: boolean): Draw {
  return (surface, width) => {
    const ink = colours();
    const names = Math.min(280, width * 0.34);
    const numbers = shares ? 170 : 100;
    const room = width - names - numbers - 20;
    const most = Math.max(...bars.map((it) => Math.abs(it.value)), 1e-9);
    bars.forEach((it, i) => {
      const y = i * kBarPixels + kBarPixels / 2;
      surface.text(0, y, it.name, { fill: ink.text, room: names - 8 });
      surface.text(names + (shares ? 80 : numbers) , y, number(it.value, unit), { fill: ink.text, align: 'right' });
      if (shares) surface.text(names + numbers - 14, y, percent(it.share), { fill: ink.muted, align: 'right' });
      surface.rect(names + numbers + 10, y - 8, Math.max(1, room * Math.abs(it.value) / most), 16, ink.accent);
    });
  };
}

export function Bars({ shown }: { shown: Shown }): JSX.Element {
  const { measure } = useUi();
  const index = measureOf(shown.table, measure, isMeasure);
  const column = shown.table.columns[index]!;
  const all = barsOf(shown, index);
  const bars = all.slice(0, kBarsMax);
  const draw = drawer(bars, column.unit, adds(column.name) && all.every((it) => it.value >= 0));
  const height = Math.max(1, bars.length) * kBarPixels;
  usePicture(draw, height);
  if (bars.length === 0) return <Empty title="No row in this interval"><p>Bars appear when the traced functions run.</p></Empty>;
  return (
    <div class="scrolls">
      <div class="chart-head"><MeasureChoice table={shown.table} fits={isMeasure} chosen={index} />
        {all.length > bars.length && <span class="muted">the {kBarsMax} largest of {count(all.length)}</span>}</div>
      <Canvas draw={draw} height={height} label={`Bars of ${column.name}: ${bars.slice(0, 5).map((it) => `${it.name} ${number(it.value, column.unit)}`).join(', ')}`} />
      <details class="twin"><summary>The same as a table</summary><Grid rows={shown.rows} columns={shown.table.columns} label="The same as a table" /></details>
    </div>
  );
}
