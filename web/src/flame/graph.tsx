// SPDX-License-Identifier: Apache-2.0
// One flame graph on a canvas: a click zooms into a frame, arrow keys walk, Enter zooms, Backspace goes
// back, s opens the sandwich.
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Canvas } from '../draw/canvas';
import { number, percent } from '../format';
import { drawFlame, kFramePixels } from './draw';
import { deepest, layout, type Box } from './layout';
import type { Node } from './tree';

interface Props {
  root: Node;
  matches: ((name: string) => boolean) | null;
  totals: { now: number; other: number } | null;
  unit: string | undefined;
  upwards?: boolean;
  onMiddle: (name: string) => void;
}

function pathOf(node: Node): string[] {
  const names: string[] = [];
  for (let it: Node | null = node; it && it.parent; it = it.parent) names.unshift(it.name);
  return names;
}

/** The node at a path, in a tree that may have grown since. */
function find(root: Node, path: string[]): Node {
  let node = root;
  for (const name of path) {
    const next = node.children?.get(name);
    if (!next) return node;
    node = next;
  }
  return node;
}

function told(node: Node, root: Node, props: Props): string {
  const now = `${node.name}${node.module ? ` (${node.module})` : ''}: ${number(node.total, props.unit)}, ${percent(node.total / (root.total || 1))}`;
  if (!props.totals) return `${now}; itself ${number(node.self, props.unit)}`;
  const share = node.total / (props.totals.now || 1) - node.other / (props.totals.other || 1);
  return `${now}; there ${percent(node.other / (props.totals.other || 1))} ${share >= 0 ? '▲' : '▼'} ${percent(Math.abs(share))}`;
}

/** The box that an arrow key leads to. */
function walked(boxes: Box[], from: Box | undefined, key: string): Box | undefined {
  if (!from) return boxes[0];
  if (key === 'ArrowUp') return boxes.find((it) => it.node === from.node.parent);
  if (key === 'ArrowDown') return boxes.find((it) => it.node.parent === from.node);
  const row = boxes.filter((it) => it.depth === from.depth);
  const at = row.indexOf(from);
  return row[at + (key === 'ArrowRight' ? 1 : -1)];
}

export function Graph(props: Props): JSX.Element {
  const [zoom, setZoom] = useState<string[]>([]);
  const [chosen, setChosen] = useState<string[] | null>(null);
  const [depth, setDepth] = useState(1);
  const boxes = useRef<Box[]>([]);
  const top = find(props.root, zoom);
  const at = chosen ? find(props.root, chosen) : null;
  const upwards = props.upwards ?? false;
  const height = (depth + 1) * kFramePixels;
  useEffect(() => {
    const needed = deepest(boxes.current);
    if (needed !== depth) setDepth(needed);
  });
  const hit = (x: number, y: number): Box | undefined => {
    const row = Math.floor((upwards ? height - y : y) / kFramePixels);
    return boxes.current.find((it) => it.depth === row && x >= it.x && x < it.x + it.width);
  };
  const keys = (event: KeyboardEvent): void => {
    const here = boxes.current.find((it) => it.node === at);
    if (event.key.startsWith('Arrow')) {
      const key = upwards ? { ArrowUp: 'ArrowDown', ArrowDown: 'ArrowUp' }[event.key] ?? event.key : event.key;
      const next = walked(boxes.current, here, key);
      if (next) setChosen(pathOf(next.node));
    } else if (event.key === 'Enter' && here) setZoom(pathOf(here.node));
    else if (event.key === 'Backspace') setZoom(zoom.slice(0, -1));
    else if (event.key === 's' && here) props.onMiddle(here.node.name);
    else return;
    event.preventDefault();
  };
  return (
    <div class="flame">
      <p class="flame-told" aria-live="polite">
        {zoom.length > 0 && <button class="plain" onClick={() => setZoom([])}>⤢ whole graph</button>}
        <span title={at ? told(at, props.root, props) : ''}>{at ? told(at, props.root, props) : 'Click a frame to zoom; arrow keys walk, Enter zooms, s shows its callers.'}</span>
      </p>
      <Canvas height={height} label={`Flame graph of ${number(props.root.total, props.unit)}; the table below has its functions`}
        draw={(surface, width, high) => {
          boxes.current = layout(top, width, props.totals !== null);
          const box = boxes.current.find((it) => it.node === at) ?? null;
          drawFlame(surface, boxes.current, high, { matches: props.matches, totals: props.totals, chosen: box, upwards });
        }}
        onPoint={(x, y) => {
          const box = hit(x, y);
          if (box && box.node !== at) setChosen(pathOf(box.node));
        }}
        onPick={(x, y) => {
          const box = hit(x, y);
          if (box) setZoom(box.node === top && zoom.length > 0 ? zoom.slice(0, -1) : pathOf(box.node));
        }}
        onKey={keys} />
    </div>
  );
}
