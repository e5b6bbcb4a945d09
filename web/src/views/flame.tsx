// SPDX-License-Identifier: Apache-2.0
// Stacks: top down, bottom up, around one function, or against another interval or session.
import type { JSX } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { usePicture } from '../draw/picture';
import { clock, number, numeric, percent } from '../format';
import { Graph } from '../flame/graph';
import { FunctionTable } from '../flame/function_table';
import { matching, sandwichOf, treeOf, type Stack } from '../flame/tree';
import { drawFlame, kFramePixels } from '../flame/draw';
import { deepest, layout } from '../flame/layout';
import type { Shown } from '../model/shown';
import { store } from '../model/store';
import type { Table } from '../model/table';
import { Empty } from '../parts/empty';
import type { Frame, Row } from '../stream/lines';
import { useUi } from '../ui';
import { MeasureChoice, measureOf } from './choose';
import { isMeasure } from './fit';

export type Mode = 'down' | 'up' | 'sandwich' | 'difference';

const kModes: [Mode, string][] = [['down', 'Top down'], ['up', 'Bottom up'], ['sandwich', 'Sandwich'], ['difference', 'Difference']];

export function stacksOf(rows: Row[], table: Table, measure: number): Stack[] {
  const column = table.find((it) => it.type === 'stack');
  return rows.flatMap((row) => {
    const frames = row[column];
    if (!Array.isArray(frames)) return [];
    const weight = measure < 0 || table.mode === 'events' ? 1 : numeric(row[measure]) ?? 0;
    return weight > 0 ? [{ frames: frames as Frame[], weight }] : [];
  });
}

interface Other { name: string; rows: Row[]; table: Table }

/** What an answer can be compared with: its other intervals, and the newest of other sessions. */
function othersOf(shown: Shown): Other[] {
  const mine = shown.intervals.filter((it) => it !== shown.interval).slice(-60).reverse()
    .map((it) => ({ name: `interval at ${clock(it.begin)}`, rows: it.rows, table: shown.table }));
  const theirs = [...store.sessions.values()].filter((it) => it !== shown.session).flatMap((session) => {
    const table = session.table;
    if (!table || table.find((it) => it.type === 'stack') < 0) return [];
    return [{ name: `session ${session.id}`, rows: table.rowsAt(null).rows, table }];
  });
  return [...mine, ...theirs];
}

function matcher(search: string): ((name: string) => boolean) | null {
  const word = search.trim().toLowerCase();
  return word ? (name) => name.toLowerCase().includes(word) : null;
}

function Modes({ mode, set }: { mode: Mode; set: (mode: Mode) => void }): JSX.Element {
  return (
    <span class="switch" role="group" aria-label="Kind of flame graph">
      {kModes.map(([id, name]) => <button key={id} aria-pressed={mode === id} onClick={() => set(id)}>{name}</button>)}
    </span>
  );
}

export function Flame({ shown }: { shown: Shown }): JSX.Element {
  const { measure } = useUi();
  const [mode, setMode] = useState<Mode>('down');
  const [search, setSearch] = useState('');
  const [middle, setMiddle] = useState<string | null>(null);
  const [otherName, setOtherName] = useState<string | null>(null);
  const { table, rows } = shown;
  const index = table.columns.some(isMeasure) ? measureOf(table, measure, isMeasure) : -1;
  const unit = index >= 0 && table.mode !== 'events' ? table.columns[index]!.unit : undefined;
  const stacks = useMemo(() => stacksOf(rows, table, index), [rows, rows.length, table, index]);
  const others = mode === 'difference' ? othersOf(shown) : [];
  const other = others.find((it) => it.name === otherName) ?? others[0];
  const tree = useMemo(() => {
    const against = mode === 'difference' && other ? stacksOf(other.rows, other.table, measureOf(other.table, measure, isMeasure)) : [];
    return treeOf(stacks, mode === 'up' ? 'up' : 'down', against);
  }, [stacks, mode, other?.rows]);
  const matches = matcher(search);
  const found = matches ? matching(tree, matches) : 0;
  const totals = mode === 'difference' && other ? { now: tree.total, other: tree.other } : null;
  usePicture((surface, width, height) => drawFlame(surface, layout(tree, width, totals !== null), height, { matches, totals, chosen: null, upwards: false }),
             () => (deepest(layout(tree, 1160)) + 1) * kFramePixels);
  if (stacks.length === 0) return <Empty title="No stack in this interval"><p>Frames appear when the traced functions run.</p></Empty>;
  const sandwich = mode === 'sandwich' && middle !== null ? sandwichOf(stacks, middle) : null;
  return (
    <div class="scrolls">
      <div class="chart-head">
        <input id="search-flame" type="search" aria-label="Search functions in the graph" placeholder="search" value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
        {matches && <span><b data-share={found / tree.total}>{percent(found / tree.total)}</b> <span class="muted">of {number(tree.total, unit)}</span></span>}
        <span class="space" />
        {index >= 0 && table.mode !== 'events' && <MeasureChoice table={table} fits={isMeasure} chosen={index} />}
        <Modes mode={mode} set={setMode} />
      </div>
      {mode === 'difference' && <Against others={others} other={other} set={setOtherName} />}
      {mode === 'sandwich' && !sandwich && <p class="hint">Choose a function in the table: what calls it is above, what it calls below.</p>}
      {sandwich ? (
        <>
          <h3 class="half">Callers of {middle}</h3>
          <Graph root={sandwich.callers} matches={matches} totals={null} unit={unit} upwards onMiddle={setMiddle} />
          <h3 class="half">What it calls</h3>
          <Graph root={sandwich.callees} matches={matches} totals={null} unit={unit} onMiddle={setMiddle} />
        </>
      ) : mode !== 'sandwich' && <Graph root={tree} matches={matches} totals={totals} unit={unit} onMiddle={(name) => { setMiddle(name); setMode('sandwich'); }} />}
      <FunctionTable stacks={stacks} total={tree.total} unit={unit} matches={matches} chosen={middle}
        onChoose={(name) => { setMiddle(name); setMode('sandwich'); }} />
    </div>
  );
}

function Against(props: { others: Other[]; other: Other | undefined; set: (name: string) => void }): JSX.Element {
  if (!props.other) return <p class="hint">There is no other answer with stacks yet. Wait for the next interval, or run another session.</p>;
  return (
    <p class="against">
      <label>against <select value={props.other.name} onChange={(event) => props.set(event.currentTarget.value)}>
        {props.others.map((it) => <option key={it.name}>{it.name}</option>)}</select></label>
      <span class="muted">shares of the whole: <span class="more-mark">▲ more</span> <span class="less-mark">▼ less</span> than there</span>
    </p>
  );
}
