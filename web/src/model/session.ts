// SPDX-License-Identifier: Apache-2.0
// A session as its stream tells it.
import type { SessionInfo } from '../api';
import type { ClewError, Disarmed, Losses, SessionHead, State, StreamLine } from '../stream/lines';
import { lossOf, Table } from './table';

const kTextMax = 2000;
const kSparkPoints = 60;

export class Session {
  info: SessionInfo | null = null;
  head: SessionHead | null = null;
  state: State = 'starting';
  readonly tables = new Map<string, Table>();
  losses: Losses | null = null;
  readonly disarmed: Disarmed[] = [];
  readonly texts: string[] = [];
  error: ClewError | null = null;
  ended = false;
  /** Lines that the server could not pass on to this page. */
  gapLines = 0;
  rowsSeen = 0;
  /** Rows in each second, the newest last. */
  readonly spark: number[] = [];
  /** Negative before the first beat: what came before it is no rate. */
  private rowsAtBeat = -1;
  private lossAtInterval = 0;

  constructor(readonly id: string) {}

  get text(): string {
    return this.info?.text ?? this.head?.query ?? '';
  }

  get table(): Table | null {
    for (const table of this.tables.values()) if (table.rowsKept > 0) return table;
    return this.tables.values().next().value ?? null;
  }

  get leftOut(): number {
    let sum = 0;
    for (const table of this.tables.values()) sum += table.leftOut;
    return sum;
  }

  beat(): void {
    if (this.rowsAtBeat >= 0) this.spark.push(this.rowsSeen - this.rowsAtBeat);
    this.rowsAtBeat = this.rowsSeen;
    if (this.spark.length > kSparkPoints) this.spark.shift();
  }

  /** How many rows came with it. */
  take(line: StreamLine): number {
    if (line.session) this.head = line.session;
    if (line.columns) this.columns(line);
    if (line.losses) this.losses = { ...this.losses, ...line.losses };
    if (line.disarmed) this.disarmed.push(line.disarmed);
    if (line.text !== undefined && this.texts.push(line.text) > kTextMax) this.texts.shift();
    if (line.gap) this.gapLines += line.gap.lines;
    const count = line.rows ? this.rows(line) : 0;
    if (line.interval) this.interval(line);
    if (line.end) this.end(line.end);
    return count;
  }

  private columns(line: StreamLine): void {
    const name = line.table ?? '';
    if (!this.tables.has(name)) {
      this.tables.set(name, new Table(name, line.columns!, line.mode ?? 'table'));
    }
    if (this.state === 'starting') this.state = 'running';
  }

  private rows(line: StreamLine): number {
    const rows = line.rows!;
    this.tables.get(line.table ?? '')?.add(rows);
    this.rowsSeen += rows.length;
    return rows.length;
  }

  private interval(line: StreamLine): void {
    const { number, begin, end, partial } = line.interval!;
    const loss = lossOf(this.losses);
    this.tables.get(line.table ?? '')?.close(
      { number, begin: BigInt(begin), end: BigInt(end), partial }, loss - this.lossAtInterval);
    this.lossAtInterval = loss;
  }

  private end(end: NonNullable<StreamLine['end']>): void {
    this.ended = true;
    this.state = 'ended';
    if (end.losses) this.losses = { ...this.losses, ...end.losses };
    this.error = end.error;
  }
}
