// SPDX-License-Identifier: Apache-2.0
// A lane for each thread: between which moments its steps ran, as far as that is known. What is not
// known is hatched.
import type { JSX } from 'preact';
import { Canvas, type Draw } from '../draw/canvas';
import { colours, heatColour, type Colours } from '../draw/colours';
import type { Surface } from '../draw/surface';
import { duration } from '../format';
import type { Step, Thread } from './snap';

const kLane = 34;
const kBar = 20;
const kNames = 110;
const kFoot = 24;

export interface Lane { thread: Thread; steps: Step[] }

function startOf(lanes: Lane[]): number {
  let first = -1000;
  for (const { steps } of lanes) for (const it of steps) if (it.after_ns !== null) first = Math.min(first, it.after_ns);
  return first;
}

function hatch(surface: Surface, x: number, width: number, y: number, ink: Colours): void {
  for (let at = x; at < x + width; at += 7) surface.path([[at, y + kBar], [Math.min(at + 6, x + width), y]], ink.line, 1);
}

/** Steps that share their two moments are one bar; its tone says how many. */
function bars(surface: Surface, lane: Lane, y: number, toX: (ns: number) => number, ink: Colours): void {
  hatch(surface, kNames, toX(0) - kNames, y, ink);
  let i = 0;
  while (i < lane.steps.length) {
    const { after_ns, before_ns, unknown } = lane.steps[i]!;
    let j = i;
    while (j < lane.steps.length && lane.steps[j]!.after_ns === after_ns && lane.steps[j]!.before_ns === before_ns) j++;
    if (after_ns !== null && !unknown) {
      const x = toX(after_ns);
      const width = Math.max(2, toX(before_ns ?? 0) - x - 1);
      surface.rect(x, y, width, kBar, heatColour(Math.min(0.75, 0.3 + Math.log10(1 + j - i) * 0.15)));
    }
    i = j;
  }
}

function middleOf(step: Step | undefined): number | null {
  if (!step || step.after_ns === null) return null;
  return (step.after_ns + (step.before_ns ?? 0)) / 2;
}

function drawer(lanes: Lane[], chosen: number, at: number): Draw {
  const first = startOf(lanes);
  return (surface, width, height) => {
    const ink = colours();
    const toX = (ns: number): number => kNames + (width - kNames - 4) * (1 - ns / first);
    lanes.forEach((lane, i) => {
      const y = i * kLane + 6;
      const mine = lane.thread.thread === chosen;
      surface.text(0, y + kBar / 2, `${lane.thread.got_signal ? '✕ ' : ''}${lane.thread.thread}`, { fill: mine ? ink.text : ink.muted, room: kNames - 8, bold: mine });
      bars(surface, lane, y, toX, ink);
      if (!mine) return;
      const step = lane.steps[at];
      const middle = middleOf(step);
      if (middle === null) return;
      surface.path([[toX(step!.after_ns!), y - 3], [Math.max(toX(step!.after_ns!) + 2, toX(step!.before_ns ?? 0)), y - 3]], ink.text, 2);
      surface.path([[toX(middle), 0], [toX(middle), height - kFoot]], ink.text, 1.5);
    });
    surface.path([[toX(0), 0], [toX(0), height - kFoot]], ink.bad, 2);
    surface.text(kNames, height - 10, `${duration(first)} before`, { fill: ink.muted });
    surface.text(toX(0), height - 10, 'the snap', { fill: ink.bad, align: 'right' });
  };
}

export function Lanes(props: { lanes: Lane[]; chosen: number; at: number; onThread: (thread: number) => void }): JSX.Element {
  const height = props.lanes.length * kLane + kFoot + 6;
  const by = (event: KeyboardEvent): void => {
    const move = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    const here = props.lanes.findIndex((it) => it.thread.thread === props.chosen);
    const next = props.lanes[here + move];
    if (!move || !next) return;
    props.onThread(next.thread.thread);
    event.preventDefault();
  };
  return (
    <Canvas draw={drawer(props.lanes, props.chosen, props.at)} height={height} onKey={by}
      label={`${props.lanes.length} threads over time; up and down choose one`}
      onPick={(_, y) => { const lane = props.lanes[Math.floor(y / kLane)]; if (lane) props.onThread(lane.thread.thread); }} />
  );
}
