// SPDX-License-Identifier: Apache-2.0
// What the heat map shows: a column for each interval, a lane for each bucket or key, and gaps where
// there was no interval.
import { bucketLabel, numeric } from '../format';
import { bucketsOf, filled, slotOf, type Slot } from '../model/buckets';
import type { Interval, Table } from '../model/table';
import { keyOf } from './choose';

export interface HeatColumn { interval: Interval; counts: Map<string, number> }

export interface Heat {
  lanes: { key: string; label: string }[];
  /** Null: there was no interval. */
  columns: (HeatColumn | null)[];
  most: number;
  least: number;
  byValue: boolean;
}

export const kColumnsMax = 240;
const kLanesMax = 40;

/** Numbers that are left out of a sequence become gaps; long gaps are cut. */
function withGaps(intervals: Interval[]): (Interval | null)[] {
  const all: (Interval | null)[] = [];
  let before: number | null = null;
  for (const it of intervals) {
    const missing = before === null ? 0 : Math.min(20, it.number - before - 1);
    for (let i = 0; i < missing; i++) all.push(null);
    all.push(it);
    before = it.number;
  }
  return all.slice(-kColumnsMax);
}

export function heatByValue(table: Table, intervals: Interval[], column: number, key: string | null): Heat {
  const slots = new Map<string, Slot>();
  const columns = withGaps(intervals.slice(-kColumnsMax)).map((interval) => {
    if (!interval) return null;
    const counts = new Map<string, number>();
    for (const row of interval.rows) {
      if (key !== null && keyOf(row, table) !== key) continue;
      for (const bucket of bucketsOf(row[column])) {
        const slot = slotOf(bucket);
        if (!slots.has(slot.key)) slots.set(slot.key, slot);
        counts.set(slot.key, (counts.get(slot.key) ?? 0) + bucket.count);
      }
    }
    return { interval, counts };
  });
  const unit = table.columns[column]!.unit;
  const lanes = filled([...slots.values()]).map((it) => ({ key: it.key, label: bucketLabel(it.bucket, unit) }));
  return bounded(lanes, columns, true);
}

export function heatByKey(table: Table, intervals: Interval[], column: number): Heat {
  const sums = new Map<string, number>();
  const columns = withGaps(intervals.slice(-kColumnsMax)).map((interval) => {
    if (!interval) return null;
    const counts = new Map<string, number>();
    for (const row of interval.rows) {
      const value = numeric(row[column]);
      if (value === null) continue;
      const key = keyOf(row, table);
      counts.set(key, value);
      sums.set(key, (sums.get(key) ?? 0) + Math.abs(value));
    }
    return { interval, counts };
  });
  const largest = [...sums].sort((a, b) => b[1] - a[1]).slice(0, kLanesMax);
  // The lane at the bottom is the first one.
  const lanes = largest.reverse().map(([key]) => ({ key, label: key }));
  return bounded(lanes, columns, false);
}

function bounded(lanes: Heat['lanes'], columns: Heat['columns'], byValue: boolean): Heat {
  let most = 0;
  let least = Infinity;
  for (const column of columns) {
    if (!column) continue;
    for (const value of column.counts.values()) {
      most = Math.max(most, value);
      if (value > 0) least = Math.min(least, value);
    }
  }
  return { lanes, columns, most, least: Number.isFinite(least) ? least : 0, byValue };
}
