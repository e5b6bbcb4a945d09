// SPDX-License-Identifier: Apache-2.0
// The choices that charts share: which column, and whose rows.
import type { JSX } from 'preact';
import { shown as text } from '../format';
import type { Shown } from '../model/shown';
import type { Column, Row } from '../stream/lines';
import type { Table } from '../model/table';
import { change, useUi } from '../ui';
import { isMeasure } from './fit';

/** The columns that are no measure: they name a row. */
export function keyColumns(table: Table): number[] {
  const keys = table.columns.flatMap((it, i) => (it.role === 'key' ? [i] : []));
  if (keys.length > 0) return keys;
  return table.columns.flatMap((it, i) => (isMeasure(it) || ['histogram', 'toplist'].includes(it.type) ? [] : [i]));
}

export function keyOf(row: Row, table: Table): string {
  const keys = keyColumns(table);
  return keys.map((i) => text(row[i], table.columns[i]!)).join(' · ') || 'all';
}

/** The index of the column that a chart shows: the chosen one, if it is of the kind, else the first. */
export function measureOf(table: Table, measure: string | null, fits: (column: Column) => boolean): number {
  const chosen = table.find((it) => it.name === measure && fits(it));
  if (chosen >= 0) return chosen;
  const aggregate = table.find((it) => fits(it) && it.role === 'aggregate');
  return aggregate >= 0 ? aggregate : table.find(fits);
}

export function MeasureChoice(props: {
  table: Table; fits: (column: Column) => boolean; chosen: number;
}): JSX.Element {
  const fitting = props.table.columns.filter(props.fits);
  const chosen = props.table.columns[props.chosen]!;
  if (fitting.length < 2) return <b class="measure">{chosen.approximate ? '≈ ' : ''}{chosen.name}</b>;
  return (
    <select aria-label="Column" value={chosen.name} onChange={(event) => change({ measure: event.currentTarget.value })}>
      {fitting.map((it) => <option key={it.name} value={it.name}>{it.approximate ? '≈ ' : ''}{it.name}</option>)}
    </select>
  );
}

const kKeysMax = 200;

export function KeyChoice({ shown, all }: { shown: Shown; all: string }): JSX.Element | null {
  const { key } = useUi();
  const keys = new Set(shown.rows.slice(0, kKeysMax).map((row) => keyOf(row, shown.table)));
  if (key !== null) keys.add(key);
  if (keys.size < 2) return null;
  return (
    <select aria-label="Rows" value={key ?? ''} onChange={(event) => change({ key: event.currentTarget.value || null })}>
      <option value="">{all}</option>
      {[...keys].sort().map((it) => <option key={it} value={it}>{it}</option>)}
    </select>
  );
}
