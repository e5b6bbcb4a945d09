// SPDX-License-Identifier: Apache-2.0
// The heat map: time by value where a column has distributions, else time by key. Below it the table of
// the interval under the cursor, and a lane that marks the intervals that lack something.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { step } from '../actions';
import { Canvas, type Draw } from '../draw/canvas';
import { colours, heatColour, type Colours } from '../draw/colours';
import { usePicture } from '../draw/picture';
import type { Surface } from '../draw/surface';
import { clock, count, number, short } from '../format';
import type { Shown } from '../model/shown';
import { Empty } from '../parts/empty';
import type { Column } from '../stream/lines';
import { change, useUi } from '../ui';
import { KeyChoice, MeasureChoice, measureOf } from './choose';
import { isMeasure } from './fit';
import { heatByKey, heatByValue, kColumnsMax, type Heat as Model } from './heat_model';
import { Grid } from './table';

const kFoot = 34;
const kLossLane = 6;
const kHead = 6;

const fits = (column: Column): boolean => column.type === 'histogram' || isMeasure(column);

interface Place { left: number; wide: number; high: number }

/** Columns keep their width until there are many, so that the map grows and does not jump. */
function placeOf(model: Model, width: number, height: number): Place {
  const left = model.byValue ? 76 : Math.min(220, width * 0.25);
  const columns = Math.max(model.columns.length, 40);
  return { left, wide: (width - left) / Math.min(columns, kColumnsMax), high: (height - kHead - kFoot) / Math.max(1, model.lanes.length) };
}

function cells(surface: Surface, model: Model, place: Place, log: boolean): void {
  const bottom = kHead + place.high * model.lanes.length;
  model.columns.forEach((column, i) => {
    const x = place.left + i * place.wide;
    if (!column) return;
    surface.rect(x, kHead, place.wide + 0.3, bottom - kHead, heatColour(0));
    model.lanes.forEach((lane, j) => {
      const value = column.counts.get(lane.key);
      if (!value) return;
      const share = log ? 0.12 + 0.88 * Math.log1p(value - Math.min(model.least, value)) / Math.log1p(Math.max(1, model.most - model.least)) : value / model.most;
      surface.rect(x, bottom - (j + 1) * place.high, place.wide + 0.3, place.high + 0.3, heatColour(share));
    });
  });
}

function gaps(surface: Surface, model: Model, place: Place, ink: Colours): void {
  const bottom = kHead + place.high * model.lanes.length;
  model.columns.forEach((column, i) => {
    if (column) return;
    const x = place.left + i * place.wide;
    for (let y = kHead; y < bottom; y += 8) surface.path([[x, Math.min(bottom, y + 6)], [x + place.wide, y]], ink.line, 1);
  });
}

function axes(surface: Surface, model: Model, place: Place, ink: Colours): void {
  const bottom = kHead + place.high * model.lanes.length;
  const every = Math.max(1, Math.ceil(16 / place.high));
  model.lanes.forEach((lane, j) => {
    if (j % every) return;
    const y = bottom - (model.byValue ? j : j + 0.5) * place.high;
    surface.text(place.left - 8, y, lane.label, { fill: ink.muted, align: 'right', room: place.left - 8 });
  });
  const skip = Math.max(1, Math.ceil(90 / place.wide));
  model.columns.forEach((column, i) => {
    const x = place.left + i * place.wide;
    if (column && i % skip === 0) surface.text(x, bottom + 20, clock(column.interval.begin), { fill: ink.muted });
    if (!column || column.interval.lossCount <= 0) return;
    surface.rect(x, bottom + 3, Math.max(2, place.wide - 1), kLossLane, ink.warn);
    surface.path([[x, bottom + 3], [x + Math.max(2, place.wide - 1), bottom + 3 + kLossLane]], ink.panel, 1);
  });
  surface.rect(place.left, bottom + 3 + kLossLane, model.columns.length * place.wide, 1, ink.line);
}

function drawer(model: Model, log: boolean, cursor: number | null): Draw {
  return (surface, width, height) => {
    const ink = colours();
    const place = placeOf(model, width, height);
    cells(surface, model, place, log);
    gaps(surface, model, place, ink);
    axes(surface, model, place, ink);
    const at = model.columns.findIndex((it) => it?.interval.number === cursor);
    if (cursor === null || at < 0) return;
    const x = place.left + at * place.wide;
    const bottom = kHead + place.high * model.lanes.length;
    surface.path([[x, kHead], [x + place.wide, kHead], [x + place.wide, bottom], [x, bottom], [x, kHead]], ink.text, 1.5);
  };
}

interface Under { column: number; lane: number; x: number; y: number; width: number }

function Tip({ model, under, unit }: { model: Model; under: Under; unit: string | undefined }): JSX.Element | null {
  const column = model.columns[under.column];
  const lane = model.lanes[under.lane];
  if (column === undefined) return null;
  const style = under.x > under.width - 300
    ? { right: `${under.width - under.x + 14}px`, top: `${under.y + 10}px` }
    : { left: `${under.x + 14}px`, top: `${under.y + 10}px` };
  if (!column) return <div class="tip" style={style}>no interval here</div>;
  const value = lane ? column.counts.get(lane.key) : undefined;
  const total = [...column.counts.values()].reduce((sum, it) => sum + it, 0);
  const next = model.lanes[under.lane + 1];
  return (
    <div class="tip" style={style}>
      <b>{clock(column.interval.begin)}</b> {lane && (model.byValue && next ? `${lane.label} to ${next.label}` : lane.label)}
      <div>{model.byValue ? `${count(value ?? 0)} of ${count(total)}` : value === undefined ? 'no row' : number(value, unit)}</div>
      {column.interval.lossCount > 0 && <div class="warn">▲ {count(column.interval.lossCount)} missed, dropped or lost here</div>}
    </div>
  );
}

function Legend({ model, unit }: { model: Model; unit: string | undefined }): JSX.Element {
  const stops = [0, 0.25, 0.5, 0.75, 1].map((it) => heatColour(it)).join(',');
  return (
    <span class="legend"><span>0</span><i style={{ background: `linear-gradient(90deg, ${stops})` }} />
      <span>{model.byValue ? short(model.most) : number(model.most, unit)}</span></span>
  );
}

export function Heat({ shown }: { shown: Shown }): JSX.Element {
  const { measure, key, at } = useUi();
  const [log, setLog] = useState(true);
  const [under, setUnder] = useState<Under | null>(null);
  const { table, intervals } = shown;
  const distribution = table.find((it) => it.type === 'histogram');
  const index = measure === null && distribution >= 0 ? distribution : measureOf(table, measure, fits);
  const column = table.columns[index]!;
  const byValue = column.type === 'histogram';
  const model = byValue ? heatByValue(table, intervals, index, key) : heatByKey(table, intervals, index);
  const height = byValue ? 300 : Math.min(420, Math.max(120, model.lanes.length * 20 + kFoot + kHead));
  const draw = drawer(model, log, at);
  usePicture(draw, height);
  const find = (x: number, y: number, width: number): Under | null => {
    const place = placeOf(model, width, height);
    const i = Math.floor((x - place.left) / place.wide);
    if (i < 0 || i >= model.columns.length) return null;
    return { column: i, lane: model.lanes.length - 1 - Math.floor((y - kHead) / place.high), x, y, width };
  };
  const pick = (x: number, y: number, width: number): void => {
    const found = find(x, y, width);
    const chosen = found ? model.columns[found.column] : null;
    if (chosen) change({ at: chosen.interval.number === at ? null : chosen.interval.number });
  };
  const keys = (event: KeyboardEvent): void => {
    const by = event.key === 'ArrowLeft' ? -1 : event.key === 'ArrowRight' ? 1 : 0;
    if (by) step(by);
    if (by) event.preventDefault();
  };
  if (model.lanes.length === 0) return <Empty title="No value yet"><p>The map fills when the traced functions run.</p></Empty>;
  return (
    <div class="chart-and-table">
      <div class="chart-head"><MeasureChoice table={table} fits={fits} chosen={index} />{byValue && <KeyChoice shown={shown} all="all rows together" />}
        <span class="space" /><Legend model={model} unit={byValue ? undefined : column.unit} />
        <label class="check"><input type="checkbox" checked={log} onChange={() => setLog(!log)} />log colour</label></div>
      <div class="over">
        <Canvas draw={draw} height={height} label={`Heat map of ${column.name} over ${model.columns.length} intervals; arrow keys move the cursor, the table below shows it`}
          onPoint={(x, y, width) => setUnder(find(x, y, width))} onLeave={() => setUnder(null)} onPick={pick} onKey={keys} />
        {under && <Tip model={model} under={under} unit={column.unit} />}
      </div>
      <p class="under-cursor"><b>{shown.interval ? clock(shown.interval.begin) : ''}</b> <span class="muted">{at === null ? 'the newest interval; click the map, or use arrow keys, for another' : 'the interval under the cursor'}</span></p>
      <Grid rows={shown.rows} columns={table.columns} label="The interval under the cursor" />
    </div>
  );
}
