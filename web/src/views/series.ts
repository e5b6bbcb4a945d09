// SPDX-License-Identifier: Apache-2.0
// The lines of the Time view: for each key its number in each interval; none where there is no row.
import { numeric } from '../format';
import type { Shown } from '../model/shown';
import { keyOf } from './choose';

export const kLinesMax = 8;
const kIntervalsMax = 3600;
const kPointsMax = 20_000;

export interface Series {
  names: string[];
  /** Seconds since 1970. */
  times: number[];
  values: (number | null)[][];
  /** Keys beyond those that are drawn. */
  others: number;
  points: boolean;
}

const seconds = (ns: bigint): number => Number(ns / 1000n) / 1e6;

export function seriesOf(shown: Shown, measure: number): Series {
  return shown.table.mode === 'events' ? ofEvents(shown, measure) : ofIntervals(shown, measure);
}

function ofIntervals(shown: Shown, measure: number): Series {
  const { table } = shown;
  const intervals = shown.intervals.slice(-kIntervalsMax);
  const sums = new Map<string, number>();
  const found = intervals.map((interval) => {
    const values = new Map<string, number>();
    for (const row of interval.rows) {
      const value = numeric(row[measure]);
      if (value === null) continue;
      const key = keyOf(row, table);
      values.set(key, value);
      sums.set(key, (sums.get(key) ?? 0) + Math.abs(value));
    }
    return values;
  });
  const names = [...sums].sort((a, b) => b[1] - a[1]).slice(0, kLinesMax).map(([name]) => name);
  const times: number[] = [];
  const values: (number | null)[][] = names.map(() => []);
  intervals.forEach((interval, i) => {
    const before = intervals[i - 1];
    if (before && interval.number > before.number + 1) {
      times.push(seconds((before.end + interval.begin) / 2n));
      values.forEach((line) => line.push(null));
    }
    times.push(seconds(interval.begin));
    names.forEach((name, j) => values[j]!.push(found[i]!.get(name) ?? null));
  });
  return { names, times, values, others: sums.size - names.length, points: false };
}

function ofEvents(shown: Shown, measure: number): Series {
  const time = shown.table.find((it) => it.type === 'time');
  const pairs = shown.rows.slice(-kPointsMax).flatMap((row) => {
    const value = numeric(row[measure]);
    const at = row[time];
    return value === null || at === null || typeof at === 'object' ? [] : [[seconds(BigInt(at as string)), value] as const];
  }).sort((a, b) => a[0] - b[0]);
  return { names: [shown.table.columns[measure]!.name], times: pairs.map((it) => it[0]),
           values: [pairs.map((it) => it[1])], others: 0, points: true };
}
