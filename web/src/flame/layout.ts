// SPDX-License-Identifier: Apache-2.0
// Where each frame of a flame graph is. What is narrower than half a pixel is left out.
import type { Node } from './tree';

export interface Box { node: Node; x: number; width: number; depth: number }

const kNarrowest = 0.5;

const sizeOf = (node: Node, both: boolean): number => (both ? Math.max(node.total, node.other) : node.total);

/** `both`: a difference, where a frame may be in only one of the two answers. */
export function layout(root: Node, width: number, both = false): Box[] {
  const boxes: Box[] = [];
  const place = (node: Node, x: number, scale: number, depth: number): void => {
    const wide = sizeOf(node, both) * scale;
    if (wide < kNarrowest) return;
    boxes.push({ node, x, width: wide, depth });
    if (!node.children) return;
    let sum = 0;
    if (both) node.children.forEach((it) => { sum += sizeOf(it, both); });
    const inner = sum > 0 ? Math.min(scale, wide / sum) : scale;
    // What is too narrow to be seen is at the right end, in any order.
    const children: Node[] = [];
    node.children.forEach((it) => { if (sizeOf(it, both) * inner >= kNarrowest) children.push(it); });
    children.sort((a, b) => (a.name < b.name ? -1 : 1));
    let at = x;
    for (const child of children) {
      place(child, at, inner, depth + 1);
      at += sizeOf(child, both) * inner;
    }
  };
  const size = sizeOf(root, both);
  if (size > 0) place(root, 0, width / size, 0);
  return boxes;
}

export function deepest(boxes: Box[]): number {
  return boxes.reduce((most, it) => Math.max(most, it.depth), 0);
}
