// SPDX-License-Identifier: Apache-2.0
// The answer: a view of it, chosen from those that its columns allow, and what it lacks.
import type { JSX } from 'preact';
import { explain, pause, step } from '../actions';
import { clock, duration } from '../format';
import { kViews } from '../keys';
import { shownOf, type Shown } from '../model/shown';
import { store, useStore } from '../model/store';
import { Empty } from '../parts/empty';
import { LossBar } from '../parts/loss_bar';
import { ShareMenu } from '../parts/share_menu';
import { change, useUi, type Ui, type View } from '../ui';
import { Bars } from '../views/bars';
import { Explain } from '../views/explain';
import { unfit } from '../views/fit';
import { Flame } from '../views/flame';
import { Heat } from '../views/heat';
import { Histogram } from '../views/histogram';
import { TableView } from '../views/table';
import { Time } from '../views/time';

const kParts: Record<Exclude<View, 'explain'>, (props: { shown: Shown }) => JSX.Element> = {
  table: TableView, bars: Bars, time: Time, histogram: Histogram, heat: Heat, flame: Flame,
};

function ViewTabs({ shown, view }: { shown: Shown | null; view: View }): JSX.Element {
  const choose = (next: View): void => (next === 'explain' ? void explain() : change({ view: next }));
  const move = (event: KeyboardEvent, at: number): void => {
    const by = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    const next = by ? kViews[(at + by + kViews.length) % kViews.length]![0] : null;
    if (!next) return;
    choose(next);
    document.getElementById(`view-${next}`)?.focus();
  };
  return (
    <div class="view-tabs" role="tablist" aria-label="Views">
      {kViews.map(([id, name], at) => {
        const reason = shown ? unfit(id, shown.table) : null;
        return (
          <button key={id} id={`view-${id}`} role="tab" aria-selected={view === id} aria-controls="view"
            tabIndex={view === id ? 0 : -1} class={reason ? 'unfit' : ''} title={reason ?? `${name} (${at + 1})`}
            onClick={() => choose(id)} onKeyDown={(event) => move(event, at)}>{name}</button>
        );
      })}
    </div>
  );
}

function Moment({ shown, ui }: { shown: Shown; ui: Ui }): JSX.Element {
  const { session, interval, intervals, table } = shown;
  const live = session.state !== 'ended';
  const [mark, state] = ui.paused ? ['❚❚', 'paused'] : live && ui.at === null ? ['●', 'live']
    : live ? ['◷', 'earlier'] : ['■', 'ended'];
  const many = table.mode === 'table' && intervals.length > 1;
  return (
    <span class="moment">
      <span class={live && !ui.paused && ui.at === null ? 'good' : 'muted'} title={state}>{mark} <span class="roomy">{state}</span></span>
      {many && <button class="plain" aria-label="Earlier interval" title="[" onClick={() => step(-1)}>‹</button>}
      {interval && (
        <span class="moment-time" title={`${interval.partial ? 'partial ' : ''}interval ${interval.number}: ${duration(Number(interval.end - interval.begin))}`}>
          {clock(interval.begin)}{interval.partial && <> ◐<span class="roomy"> partial</span></>}
        </span>
      )}
      {many && <button class="plain" aria-label="Later interval" title="]" disabled={ui.at === null} onClick={() => step(1)}>›</button>}
      {many && ui.at !== null && <button class="plain" onClick={() => change({ at: null })}>newest</button>}
    </span>
  );
}

function TableChoice({ shown }: { shown: Shown }): JSX.Element | null {
  const { session, table } = shown;
  if (session.tables.size < 2) return null;
  return (
    <select aria-label="Table" value={table.name} class="table-choice"
      onChange={(event) => change({ table: event.currentTarget.value, at: null, measure: null, key: null })}>
      {[...session.tables.keys()].map((name) => <option key={name} value={name}>{name || 'answer'}</option>)}
    </select>
  );
}

function Nothing({ ui }: { ui: Ui }): JSX.Element {
  const session = ui.session ? store.sessions.get(ui.session) : undefined;
  if (!session) {
    return (
      <Empty title="Ask a running process">
        <ol>
          <li>Choose a process on the left.</li>
          <li>Write a query above, or take an example on the left.</li>
          <li>Run it with <kbd>Ctrl ↵</kbd>. The process goes on while Clew counts.</li>
        </ol>
      </Empty>
    );
  }
  if (session.error) {
    return <Empty title="There is no answer"><p class="bad message">✕ {session.error.message}</p></Empty>;
  }
  if (session.state === 'ended') return <Empty title="The session has ended without an answer" />;
  return <Empty title="Starting…"><p>Probes are being put into place.</p></Empty>;
}

function Body({ shown, ui }: { shown: Shown | null; ui: Ui }): JSX.Element {
  if (ui.view === 'explain') return <Explain />;
  if (!shown) return <Nothing ui={ui} />;
  const reason = unfit(ui.view, shown.table);
  if (reason) return <Empty title={`${kViews.find(([id]) => id === ui.view)![1]} cannot show this answer`}><p>{reason}</p></Empty>;
  const Part = kParts[ui.view];
  return <Part key={`${shown.session.id} ${shown.table.name}`} shown={shown} />;
}

function Texts({ shown }: { shown: Shown | null }): JSX.Element | null {
  const texts = shown?.session.texts;
  if (!texts || texts.length === 0) return null;
  return (
    <details class="texts"><summary>What the script printed ({texts.length} lines)</summary>
      <pre>{texts.slice(-500).join('')}</pre></details>
  );
}

export function Answer(): JSX.Element {
  const ui = useUi();
  useStore(ui.paused);
  const shown = shownOf(ui);
  const session = (ui.session ? store.sessions.get(ui.session) : null) ?? null;
  const failed = shown && session?.error;
  return (
    <>
      <div class="view-bar">
        <ViewTabs shown={shown} view={ui.view} />
        <span class="space" />
        {shown && <TableChoice shown={shown} />}
        {shown && <Moment shown={shown} ui={ui} />}
        <button class="plain" aria-label={ui.paused ? 'Go on' : 'Pause'} aria-pressed={ui.paused} onClick={pause} title="Space; the session goes on">
          {ui.paused ? '▶' : '❚❚'} <span class="roomy">{ui.paused ? 'Go on' : 'Pause'}</span>
        </button>
        <ShareMenu shown={shown} />
      </div>
      <div id="view" class="view" role="tabpanel" aria-labelledby={`view-${ui.view}`}>
        {failed && <p class="bad message">✕ {session!.error!.message}</p>}
        <Body shown={shown} ui={ui} />
        <Texts shown={shown} />
      </div>
      <LossBar session={session} />
    </>
  );
}
