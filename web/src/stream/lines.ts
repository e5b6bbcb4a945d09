// SPDX-License-Identifier: Apache-2.0
// The lines of a session's result stream, as docs/output-stream.md describes them, and the lines of
// the server's stream that carry them.

/** A number of 64 bits: beyond 2^53 it is a string of digits. */
export type Whole = number | string;

export interface Column {
  name: string;
  type: string;
  unit?: string;
  role?: 'key' | 'aggregate' | 'plain';
  approximate?: boolean;
}

export interface Bucket {
  count: number;
  value?: number;
  below?: number;
  at_least?: number;
  at_most?: number;
  around?: number;
}

export interface Frame {
  symbol?: string;
  offset?: number;
  module?: string;
  file?: string;
  line?: number;
  inlined?: boolean;
  address?: Whole;
}

export interface TopItem { value: Value; count: number }

export type Value =
  | null | boolean | number | string | { hex: string } | Bucket[] | TopItem[] | Frame[];

export type Row = Value[];

export type Counts = Record<string, number>;

export interface Losses {
  missed?: Counts;
  dropped?: Counts;
  lost?: string[];
  refused?: Refusal[];
  sites?: number;
  attach_ms?: number;
  stopped_ms?: number;
  open_calls?: { calls?: number; count?: number; oldest_ns?: number } | null;
  left_by_jump?: string[];
  cost?: Cost;
}

export interface Refusal { function?: string; module?: string; reason?: string; [key: string]: unknown }

export interface Cost {
  share?: number;
  share_low?: number;
  share_high?: number;
  unmeasured?: string;
  max_overhead?: number;
  processes?: { process: number; share: number }[];
}

export interface Disarmed {
  probe?: string;
  process?: number;
  out_of_fuel?: boolean;
  function?: string;
  share?: number;
  max_overhead?: number;
}

export interface SessionHead {
  version: number;
  clew: string;
  query: string;
  targets: Record<string, string>[];
  host: string;
  started: string;
}

export interface ClewError { message: string; place?: { line: number; column: number } | null; fix?: string }

export interface StreamLine {
  seq?: number;
  session?: SessionHead;
  columns?: Column[];
  mode?: 'table' | 'events';
  table?: string;
  rows?: Row[];
  interval?: { number: number; begin: string; end: string; partial: boolean };
  losses?: Losses;
  disarmed?: Disarmed;
  text?: string;
  events?: Row[];
  gap?: { lines: number };
  end?: { losses?: Losses; error: ClewError | null };
}

export type State = 'starting' | 'running' | 'stopping' | 'ended';

/** A line of /api/v1/stream. */
export interface ServerLine {
  n: number;
  id?: string;
  line?: StreamLine;
  state?: State | 'forgotten';
  error?: unknown;
  beat?: string;
  gap?: { id: string | null; lines: number };
}
