// SPDX-License-Identifier: Apache-2.0
// What all parts of the page share: the sessions, and who wants to hear of changes. Parts are told at
// most once a frame, however many lines come.
import { useEffect, useReducer } from 'preact/hooks';
import type { SessionInfo } from '../api';
import { get } from '../api';
import { listen } from '../stream/client';
import type { ServerLine } from '../stream/lines';
import type { Link } from '../stream/reader';
import { Session } from './session';

/** All rows of all sessions that a page keeps. */
export const kRowsMax = 1_000_000;

type Listener = () => void;

class Store {
  readonly sessions = new Map<string, Session>();
  link: Link = 'broken';
  /** A beat of the server was heard at this moment. */
  beatAt = 0;
  private lastN = 0;
  private rows = 0;
  private readonly listeners = new Set<Listener>();
  private frame = 0;
  private leave: (() => void) | null = null;
  private refreshing = false;

  begin(token: string): void {
    this.leave?.();
    this.sessions.clear();
    this.lastN = 0;
    this.rows = 0;
    this.leave = listen(token, {
      text: (lines) => this.text(lines),
      link: (state) => {
        this.link = state;
        if (state === 'open') void this.refresh();
        this.changed();
      },
    });
  }

  subscribe(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => { this.listeners.delete(listener); };
  }

  changed(): void {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.listeners.forEach((listener) => listener());
    });
  }

  /** Gets the sessions' texts and targets, which the stream does not have. */
  async refresh(): Promise<void> {
    if (this.refreshing) return;
    this.refreshing = true;
    // What begins while the answer is on its way is not in it.
    const asked = [...this.sessions.keys()];
    try {
      const { sessions } = await get<{ sessions: SessionInfo[] }>('sessions');
      const living = new Set(sessions.map((it) => it.id));
      for (const id of asked) if (!living.has(id)) this.sessions.delete(id);
      sessions.forEach((info) => this.know(info));
    } catch {
      // The link's state tells it.
    } finally {
      this.refreshing = false;
    }
    this.changed();
  }

  know(info: SessionInfo): void {
    const session = this.session(info.id);
    session.info = info;
    session.state = info.state;
    if (info.losses && !session.losses) session.losses = info.losses;
    if (info.error && !session.error) {
      session.error = typeof info.error === 'string' ? { message: info.error }
        : { message: info.error.message ?? 'it failed' };
    }
    this.changed();
  }

  private session(id: string): Session {
    let session = this.sessions.get(id);
    if (!session) this.sessions.set(id, session = new Session(id));
    return session;
  }

  private text(lines: string): void {
    let from = 0;
    for (let to = lines.indexOf('\n'); to >= 0; to = lines.indexOf('\n', from)) {
      if (to > from) this.line(lines.slice(from, to));
      from = to + 1;
    }
    this.changed();
  }

  private line(text: string): void {
    let line: ServerLine;
    try {
      line = JSON.parse(text) as ServerLine;
    } catch {
      return;
    }
    if (line.beat) {
      this.beatAt = performance.now();
      this.sessions.forEach((it) => it.state !== 'ended' && it.beat());
      return;
    }
    if (line.gap) {
      if (line.gap.id && line.gap.id !== 'null') this.session(line.gap.id).gapLines += line.gap.lines;
      return;
    }
    if (line.n <= this.lastN) return;
    this.lastN = line.n;
    if (line.id) this.about(line.id, line);
  }

  private about(id: string, line: ServerLine): void {
    if (!this.sessions.has(id)) void this.refresh();
    const session = this.session(id);
    if (line.state === 'forgotten') this.sessions.delete(id);
    else if (line.state) this.moved(session, line);
    if (!line.line) return;
    this.rows += session.take(line.line);
    while (this.rows > kRowsMax) this.makeRoom();
  }

  private moved(session: Session, line: ServerLine): void {
    session.state = line.state as Session['state'];
    if (line.error && !session.error) {
      const error = line.error as { message?: string } | string;
      session.error = { message: typeof error === 'string' ? error : error.message ?? 'it failed' };
    }
    if (line.state === 'ended') void this.refresh();
  }

  private makeRoom(): void {
    let largest = null;
    for (const session of this.sessions.values()) {
      for (const table of session.tables.values()) {
        if (!largest || table.rowsKept > largest.rowsKept) largest = table;
      }
    }
    if (!largest) return;
    this.rows -= Math.max(1, largest.dropOldest());
  }
}

export const store = new Store();

/** Makes a part draw itself again when the store has changed, but not while `paused`. */
export function useStore(paused = false): void {
  const [, again] = useReducer((n: number) => n + 1, 0);
  useEffect(() => (paused ? undefined : store.subscribe(() => again(undefined))), [paused]);
}
