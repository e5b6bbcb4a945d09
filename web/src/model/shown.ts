// SPDX-License-Identifier: Apache-2.0
// What the views show: a session's table, its intervals, and the rows of the moment under the cursor.
// While the view is paused it is what it was then, and the session goes on.
import type { Row } from '../stream/lines';
import type { Ui } from '../ui';
import type { Session } from './session';
import { store } from './store';
import type { Interval, Table } from './table';

export interface Shown {
  session: Session;
  table: Table;
  intervals: Interval[];
  interval: Interval | null;
  rows: Row[];
}

interface Frozen { session: string; table: Table; intervals: Interval[]; open: Row[] }

let frozen: Frozen | null = null;

function freeze(ui: Ui, session: Session, table: Table): { intervals: Interval[]; open: Row[] } {
  if (!ui.paused) {
    frozen = null;
    return table;
  }
  if (!frozen || frozen.session !== session.id || frozen.table !== table) {
    frozen = { session: session.id, table, intervals: [...table.intervals], open: [...table.open] };
  }
  return frozen;
}

export function shownOf(ui: Ui): Shown | null {
  const session = ui.session ? store.sessions.get(ui.session) : undefined;
  const table = session ? (ui.table !== null ? session.tables.get(ui.table) : session.table) : null;
  if (!session || !table) return null;
  const { intervals, open } = freeze(ui, session, table);
  if (table.mode === 'events') return { session, table, intervals, interval: null, rows: open };
  const interval = (ui.at === null ? intervals[intervals.length - 1]
    : intervals.find((it) => it.number === ui.at)) ?? null;
  return { session, table, intervals, interval, rows: interval ? interval.rows : open };
}
