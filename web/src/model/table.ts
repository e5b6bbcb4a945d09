// SPDX-License-Identifier: Apache-2.0
// One table of a session's answer as the page keeps it: columns, intervals, rows. Nothing is computed
// here; rows beyond what is kept are counted.
import type { Column, Counts, Losses, Row } from '../stream/lines';

export interface Interval {
  number: number;
  /** Nanoseconds since 1970; 0n if the stream did not say. */
  begin: bigint;
  end: bigint;
  partial: boolean;
  rows: Row[];
  /** What was missed, dropped or lost while it ran. */
  lossCount: number;
}

const kMergeRows = 65536;

export class Table {
  readonly intervals: Interval[] = [];
  /** Rows of the interval that has not ended; in events mode all rows that are kept. */
  open: Row[] = [];
  leftOut = 0;
  rowsKept = 0;
  constructor(readonly name: string, readonly columns: Column[], readonly mode: 'table' | 'events') {}

  add(rows: Row[]): void {
    this.rowsKept += rows.length;
    for (const row of rows) this.open.push(row);
  }

  close(interval: Omit<Interval, 'rows' | 'lossCount'>, lossCount: number): void {
    const rows = this.mode === 'events' ? [] : this.open;
    if (this.mode !== 'events') this.open = [];
    this.intervals.push({ ...interval, rows, lossCount });
    if (this.intervals.length > kMergeRows) this.dropOldest();
  }

  /** Leaves the oldest rows out, and says how many. */
  dropOldest(): number {
    let count: number;
    if (this.mode === 'events' || this.intervals.length === 0) {
      count = Math.ceil(this.open.length / 8);
      this.open = this.open.slice(count);
    } else {
      count = this.intervals.shift()!.rows.length;
    }
    this.leftOut += count;
    this.rowsKept -= count;
    return count;
  }

  /** The rows that a view of one moment shows: of the interval `at`, or of the newest one. */
  rowsAt(at: number | null): { rows: Row[]; interval: Interval | null } {
    if (this.mode === 'events') return { rows: this.open, interval: null };
    const found = at === null ? this.intervals[this.intervals.length - 1]
      : this.intervals.find((it) => it.number === at);
    if (!found) return { rows: this.open, interval: null };
    return { rows: found.rows, interval: found };
  }

  find(test: (column: Column) => boolean): number {
    return this.columns.findIndex(test);
  }
}

export function sumOf(counts: Counts | undefined): number {
  let sum = 0;
  for (const key in counts) sum += counts[key] ?? 0;
  return sum;
}

/** How much is missing, in a number that only grows while a session runs. */
export function lossOf(losses: Losses | null): number {
  if (!losses) return 0;
  return sumOf(losses.missed) + sumOf(losses.dropped) + (losses.lost?.length ?? 0);
}
