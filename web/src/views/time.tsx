// SPDX-License-Identifier: Apache-2.0
// Numbers over time, by uPlot. A row that an interval does not have is a gap.
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type uPlot from 'uplot';
import type { Draw } from '../draw/canvas';
import { colours, kDashes, seriesColour } from '../draw/colours';
import { usePicture } from '../draw/picture';
import { clock, number } from '../format';
import { useLater } from '../later';
import type { Shown } from '../model/shown';
import { Empty } from '../parts/empty';
import { change, shownTheme, useUi } from '../ui';
import { MeasureChoice, measureOf } from './choose';
import { isMeasure } from './fit';
import { seriesOf, type Series } from './series';
import { Grid } from './table';

const kHeight = 300;

function optionsOf(series: Series, unit: string | undefined, width: number,
                   pick: (index: number) => void): uPlot.Options {
  const ink = colours();
  const axis = { stroke: ink.muted, grid: { stroke: ink.line, width: 1 }, ticks: { stroke: ink.line, width: 1 }, font: '12px system-ui' };
  return {
    width, height: kHeight, legend: { show: false }, scales: { x: { time: true } },
    cursor: { drag: { x: true, y: false }, points: { size: 7 } },
    hooks: { setCursor: [(plot) => pick(plot.cursor.idx ?? -1)] },
    axes: [
      { ...axis, values: (_, splits) => splits.map((it) => clock(BigInt(Math.round(it * 1e6)) * 1000n)), space: 90 },
      { ...axis, size: 78, values: (_, splits) => splits.map((it) => number(it, unit)) },
    ],
    series: [{}, ...series.names.map((name, i) => ({
      label: name, stroke: seriesColour(i), width: 1.75, spanGaps: false,
      dash: kDashes[Math.floor(i / 2) % kDashes.length]!,
      ...(series.points ? { paths: () => null, points: { show: true, size: 4, fill: seriesColour(i) } }
        : { points: { show: series.times.length < 60, size: 5, fill: seriesColour(i) } }),
    }))],
  };
}

/** The same lines, for files. */
function drawer(series: Series, unit: string | undefined): Draw {
  return (surface, width, height) => {
    const ink = colours();
    const known = series.values.flat().filter((it): it is number => it !== null);
    const most = Math.max(...known, 1e-9);
    const first = series.times[0] ?? 0;
    const span = Math.max(1e-9, (series.times[series.times.length - 1] ?? 1) - first);
    const bottom = height - 46;
    const x = (time: number): number => 80 + (width - 90) * (time - first) / span;
    const y = (value: number): number => bottom - (bottom - 10) * value / most;
    for (let i = 0; i <= 4; i++) {
      surface.rect(80, y(most * i / 4), width - 90, 1, ink.line);
      surface.text(72, y(most * i / 4), number(Math.round(most * i / 4), unit), { fill: ink.muted, align: 'right' });
      surface.text(x(first + span * i / 4), bottom + 14, clock(BigInt(Math.round((first + span * i / 4) * 1e6)) * 1000n),
                   { fill: ink.muted, align: i === 4 ? 'right' : 'left' });
    }
    series.values.forEach((line, i) => {
      let part: [number, number][] = [];
      line.forEach((value, j) => {
        if (value !== null) part.push([x(series.times[j]!), y(value)]);
        if (value === null || j === line.length - 1) {
          if (series.points) part.forEach(([px, py]) => surface.rect(px - 1.5, py - 1.5, 3, 3, seriesColour(i)));
          else if (part.length > 1) surface.path(part, seriesColour(i), 1.75);
          part = [];
        }
      });
      surface.rect(80 + i * 150, height - 16, 12, 3, seriesColour(i));
      surface.text(98 + i * 150, height - 14, series.names[i]!, { fill: ink.text, room: 126 });
    });
  };
}

function Legend(props: { series: Series; unit: string | undefined; under: number }): JSX.Element {
  const at = props.under >= 0 ? props.under : props.series.times.length - 1;
  return (
    <ul class="series">
      {props.series.names.map((name, i) => {
        const value = props.series.values[i]![at];
        return (
          <li key={name}>
            <svg width="22" height="8" aria-hidden="true"><line x1="0" x2="22" y1="4" y2="4" stroke={seriesColour(i)} stroke-width="2.500"
              stroke-dasharray={kDashes[Math.floor(i / 2) % kDashes.length]!.join(' ')} /></svg>
            <span class="series-name" title={name}>{name}</span>
            <b>{value === null || value === undefined ? '–' : number(value, props.unit)}</b>
          </li>
        );
      })}
      {props.series.others > 0 && <li class="muted">and {props.series.others} smaller ones, in the table</li>}
    </ul>
  );
}

function usePlot(series: Series, unit: string | undefined, setUnder: (index: number) => void) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const later = useLater();
  const theme = shownTheme();
  const shape = `${series.names.join('\0')}${theme}${series.times.length < 60}${unit ?? ''}`;
  useEffect(() => {
    if (!later || !place.current) return undefined;
    const width = place.current.clientWidth;
    const data = [series.times, ...series.values] as uPlot.AlignedData;
    const made = new later.uPlot(optionsOf(series, unit, width, setUnder), data, place.current);
    plot.current = made;
    const watcher = new ResizeObserver(() => made.setSize({ width: place.current?.clientWidth ?? width, height: kHeight }));
    watcher.observe(place.current);
    return () => {
      watcher.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [later, shape]);
  useEffect(() => {
    plot.current?.setData([series.times, ...series.values] as uPlot.AlignedData);
  });
  return place;
}

export function Time({ shown }: { shown: Shown }): JSX.Element {
  const { measure } = useUi();
  const [under, setUnder] = useState(-1);
  const index = measureOf(shown.table, measure, isMeasure);
  const column = shown.table.columns[index]!;
  const series = seriesOf(shown, index);
  const place = usePlot(series, column.unit, setUnder);
  usePicture(drawer(series, column.unit), kHeight + 30);
  const pick = (): void => {
    const time = series.times[under];
    const found = time === undefined ? undefined : shown.intervals.find((it) => Number(it.begin / 1000n) / 1e6 === time);
    if (found) change({ at: found.number });
  };
  return (
    <div class="chart-and-table">
      <div class="chart-head"><MeasureChoice table={shown.table} fits={isMeasure} chosen={index} />
        <span class="muted">{under >= 0 && series.times[under] !== undefined ? clock(BigInt(Math.round(series.times[under]! * 1e6)) * 1000n) : 'newest'}</span></div>
      <Legend series={series} unit={column.unit} under={under} />
      <div ref={place} class="plot" role="img" onClick={pick}
        aria-label={`${column.name} over time for ${series.names.join(', ')}; the table below has its numbers`} />
      {series.times.length === 0 && <Empty title="No interval yet" />}
      <p class="under-cursor"><b>{shown.interval ? clock(shown.interval.begin) : ''}</b> <span class="muted">{shown.interval ? 'as a table; click a moment, or use [ and ]' : 'as a table'}</span></p>
      <Grid rows={shown.rows} columns={shown.table.columns} follow={shown.table.mode === 'events'} label="The interval as a table" />
    </div>
  );
}
