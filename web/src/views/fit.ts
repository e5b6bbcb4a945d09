// SPDX-License-Identifier: Apache-2.0
// Which views an answer's columns allow, and for the others why not and what would help.
import { isNumeric } from '../format';
import type { Column } from '../stream/lines';
import type { Table } from '../model/table';
import type { View } from '../ui';

export const isMeasure = (column: Column): boolean =>
  isNumeric(column) && column.role !== 'key' && column.type !== 'time' && column.type !== 'address';

const has = (table: Table, type: string): boolean => table.columns.some((it) => it.type === type);

const kRules: Record<View, (table: Table) => string | null> = {
  table: () => null,
  explain: () => null,
  bars: (table) => {
    if (table.mode === 'events') return 'Its rows are single events. Add “group by” and an aggregate such as count().';
    return table.columns.some(isMeasure) ? null : 'No column is a number. Add count(), sum(…) or avg(…).';
  },
  time: (table) => {
    if (!table.columns.some(isMeasure)) return 'No column is a number. Add count(), sum(…), or e.elapsed.';
    if (table.mode === 'events') {
      return has(table, 'time') ? null : 'Its events have no time. Add e.time to “select”.';
    }
    return table.intervals.length > 0 || has(table, 'time') ? null
      : 'It has one answer at the end. Add “every 1s” or “window tumbling 1s”.';
  },
  histogram: (table) => (has(table, 'histogram') ? null
    : 'No column has a distribution. Add quantize(e.elapsed) to “select”.'),
  heat: (table) => {
    if (table.mode === 'events') return 'Its rows are single events. Add “group by”, quantize(e.elapsed) and “every 1s”.';
    if (table.intervals.length === 0) return 'It has one answer at the end. Add “every 1s”.';
    return has(table, 'histogram') || table.columns.some(isMeasure) ? null
      : 'No column is a number or a distribution. Add count() or quantize(e.elapsed).';
  },
  flame: (table) => {
    if (!has(table, 'stack')) return 'No column has stacks. Group by e.ustack, and count().';
    if (table.mode === 'events') return null;
    return table.columns.some(isMeasure) ? null : 'No column is a number. Add count() or sum(…).';
  },
};

export function unfit(view: View, table: Table): string | null {
  return kRules[view](table);
}
