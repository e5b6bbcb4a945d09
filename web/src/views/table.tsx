// SPDX-License-Identifier: Apache-2.0
// The answer as a table. Only the rows that are in sight are made.
import type { JSX } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { count, exact, isNumeric, numeric, shown as text } from '../format';
import type { Shown } from '../model/shown';
import { Empty } from '../parts/empty';
import type { Bucket, Column, Row, Value } from '../stream/lines';

const kRowPixels = 26;
const kSpareRows = 6;
const kSortMax = 50_000;

export const isRight = (column: Column): boolean => isNumeric(column) && column.type !== 'time';

function lowOf(bucket: Bucket): number {
  return bucket.value ?? bucket.at_least ?? bucket.at_most ?? bucket.around ?? -Infinity;
}

/** A distribution in a cell. */
function Mini({ buckets }: { buckets: Bucket[] }): JSX.Element {
  const most = Math.max(1, ...buckets.map((it) => it.count));
  const sorted = [...buckets].sort((a, b) => lowOf(a) - lowOf(b));
  return (
    <svg class="mini" viewBox={`0 0 ${Math.max(16, sorted.length) * 5} 18`} width={Math.max(16, sorted.length) * 5} height="18" aria-hidden="true">
      {sorted.map((it, i) => {
        const high = Math.max(1, 17 * Math.log1p(it.count) / Math.log1p(most));
        return <rect key={i} x={i * 5} y={18 - high} width="4" height={high} />;
      })}
    </svg>
  );
}

function Cell({ value, column }: { value: Value | undefined; column: Column }): JSX.Element {
  const shown = text(value, column);
  const title = exact(value, column);
  if (column.type === 'histogram' && Array.isArray(value) && value.length > 0) {
    return <td title={shown}><Mini buckets={value as Bucket[]} /></td>;
  }
  return <td class={isRight(column) ? 'right' : 'left-cell'} title={title.slice(0, 2000)}>{shown}</td>;
}

interface Order { column: number; down: boolean }

function compare(a: Value | undefined, b: Value | undefined, column: Column): number {
  if (isNumeric(column)) return (numeric(a) ?? -Infinity) - (numeric(b) ?? -Infinity);
  return String(text(a, column)).localeCompare(String(text(b, column)));
}

function ordered(rows: Row[], order: Order | null, columns: Column[]): Row[] {
  if (!order || rows.length > kSortMax) return rows;
  const column = columns[order.column]!;
  const sign = order.down ? -1 : 1;
  return [...rows].sort((a, b) => sign * compare(a[order.column], b[order.column], column));
}

function turned(order: Order | null, column: number, right: boolean): Order | null {
  if (!order || order.column !== column) return { column, down: right };
  return order.down === right ? { column, down: !right } : null;
}

function Head(props: { columns: Column[]; order: Order | null; set: (order: Order | null) => void }): JSX.Element {
  const { order } = props;
  return (
    <tr>
      {props.columns.map((it, i) => {
        const mine = order?.column === i;
        const mark = mine ? (order!.down ? ' ▾' : ' ▴') : '';
        return (
          <th key={i} scope="col" class={isRight(it) ? 'right' : ''}
            aria-sort={mine ? (order!.down ? 'descending' : 'ascending') : 'none'}>
            <button class="plain" title={it.approximate ? 'computed by a sketch' : `${it.type}; order by it, here alone`}
              onClick={() => props.set(turned(order, i, isRight(it)))}>{it.approximate ? '≈ ' : ''}{it.name}{mark}</button>
          </th>
        );
      })}
    </tr>
  );
}

export function Grid({ rows, columns, follow = false, label }:
    { rows: Row[]; columns: Column[]; follow?: boolean; label: string }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const [order, setOrder] = useState<Order | null>(null);
  const [place, setPlace] = useState({ top: 0, height: 600 });
  const atEnd = useRef(true);
  const look = (): void => {
    const it = box.current;
    if (!it) return;
    atEnd.current = it.scrollTop + it.clientHeight >= it.scrollHeight - kRowPixels;
    setPlace({ top: it.scrollTop, height: it.clientHeight });
  };
  useEffect(() => {
    const watcher = new ResizeObserver(look);
    watcher.observe(box.current!);
    return () => watcher.disconnect();
  }, []);
  useLayoutEffect(() => {
    if (follow && atEnd.current) box.current!.scrollTop = box.current!.scrollHeight;
  });
  const sorted = ordered(rows, order, columns);
  const first = Math.max(0, Math.min(sorted.length, Math.floor(place.top / kRowPixels) - kSpareRows));
  const last = Math.min(sorted.length, first + Math.ceil(place.height / kRowPixels) + 2 * kSpareRows);
  return (
    <div class="grid" ref={box} onScroll={look} tabIndex={0} role="region" aria-label={label}>
      <table aria-rowcount={sorted.length + 1}>
        <thead><Head columns={columns} order={order} set={setOrder} /></thead>
        <tbody>
          {first > 0 && <tr class="filler" style={{ height: `${first * kRowPixels}px` }} aria-hidden="true"><td colSpan={columns.length} /></tr>}
          {sorted.slice(first, last).map((row, i) => (
            <tr key={first + i} aria-rowindex={first + i + 2}>
              {columns.map((column, j) => <Cell key={j} value={row[j]} column={column} />)}
            </tr>
          ))}
          {last < sorted.length && <tr class="filler" style={{ height: `${(sorted.length - last) * kRowPixels}px` }} aria-hidden="true"><td colSpan={columns.length} /></tr>}
        </tbody>
      </table>
    </div>
  );
}

export function TableView({ shown }: { shown: Shown }): JSX.Element {
  const { rows, table, session } = shown;
  const live = session.state !== 'ended';
  if (rows.length === 0) {
    return (
      <Empty title={live ? 'Nothing has happened yet' : 'Nothing has happened'}>
        <p>{live ? 'The probes are in place. Rows appear when the traced functions run.' : 'The traced functions did not run in this time.'}</p>
      </Empty>
    );
  }
  return (
    <>
      <Grid rows={rows} columns={table.columns} follow={table.mode === 'events'} label="The answer" />
      <p class="count muted">{count(rows.length)} {rows.length === 1 ? 'row' : 'rows'}
        {table.leftOut > 0 && <span class="warn"> · {count(table.leftOut)} older rows left out of this page</span>}</p>
    </>
  );
}
