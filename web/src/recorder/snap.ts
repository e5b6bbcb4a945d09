// SPDX-License-Identifier: Apache-2.0
// A snap as `clew show --json` tells it, and the steps of its threads.

export interface SnapInfo { name: string; file: string; taken?: string; process?: number | string; reason?: string }

export interface Line {
  module: string;
  function: string;
  file: string;
  line: number;
  depth: number;
  inlined: boolean;
  marks: string[];
  after_ns: number | null;
  before_ns: number | null;
  text: string | null;
  recorded?: boolean;
  system_call?: string | null;
}

export interface Thread {
  thread: number;
  got_signal: boolean;
  records: number;
  uncertain: number;
  gaps: number;
  violations: number;
  lines: Line[];
  stopped: Line | null;
}

export interface Snap {
  command: string[];
  process: number;
  reason: string;
  thread: number;
  signal: number | null;
  time_ns: number | string;
  problems: (string | Record<string, unknown>)[];
  threads: Thread[];
}

export interface Step extends Line {
  /** It is where the thread stopped, and no record says that it ran. */
  unknown: boolean;
}

const same = (a: Line, b: Line): boolean => a.file === b.file && a.line === b.line && a.function === b.function;

/** All steps of a thread; the last one is where it stopped. */
export function stepsOf(thread: Thread): Step[] {
  const steps: Step[] = thread.lines.map((it) => ({ ...it, unknown: false }));
  const { stopped } = thread;
  const last = steps[steps.length - 1];
  if (stopped && !(last && same(last, stopped))) {
    steps.push({ ...stopped, unknown: stopped.recorded === false });
  }
  return steps;
}

export type Move = 'start' | 'end' | 'on' | 'back' | 'into' | 'into-back' | 'out' | 'out-back' | 'hit' | 'hit-back';

function search(steps: Step[], from: number, by: number, fits: (step: Step) => boolean): number {
  for (let i = from + by; i >= 0 && i < steps.length; i += by) if (fits(steps[i]!)) return i;
  return from;
}

/** Where a move leads; the same place if there is no such step. */
export function moved(steps: Step[], at: number, move: Move): number {
  const here = steps[at];
  if (!here) return at;
  const deeper = (it: Step): boolean => it.depth > here.depth;
  const outer = (it: Step): boolean => it.depth < here.depth;
  const hit = (it: Step): boolean => same(it, here);
  switch (move) {
    case 'start': return 0;
    case 'end': return steps.length - 1;
    case 'on': return Math.min(steps.length - 1, at + 1);
    case 'back': return Math.max(0, at - 1);
    case 'into': return search(steps, at, 1, deeper);
    case 'into-back': return search(steps, at, -1, deeper);
    case 'out': return search(steps, at, 1, outer);
    case 'out-back': return search(steps, at, -1, outer);
    case 'hit': return search(steps, at, 1, hit);
    case 'hit-back': return search(steps, at, -1, hit);
  }
}

/** A stretch of steps of one function at one depth. */
export interface Call { first: number; last: number; depth: number; step: Step }

export function callsOf(steps: Step[]): Call[] {
  const calls: Call[] = [];
  steps.forEach((step, i) => {
    const before = calls[calls.length - 1];
    if (before && before.step.function === step.function && before.step.depth === step.depth && before.step.unknown === step.unknown) before.last = i;
    else calls.push({ first: i, last: i, depth: step.depth + (step.inlined ? 1 : 0), step });
  });
  return calls;
}
