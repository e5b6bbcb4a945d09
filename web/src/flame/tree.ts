// SPDX-License-Identifier: Apache-2.0
// Stacks with their weights as a tree, in arrays: a hundred thousand frames are merged and laid out
// within a frame of the screen.
import { frameName } from '../format';
import type { Frame } from '../stream/lines';

export interface Stack { frames: Frame[]; weight: number }

/** One line of frames from the root, with the weight that ends there. */
export interface Node {
  name: string;
  module: string;
  parent: Node | null;
  children: Map<string, Node> | null;
  /** With all below it. */
  total: number;
  self: number;
  /** The same in the answer that it is compared with. */
  other: number;
  depth: number;
}

function makeNode(name: string, module: string, parent: Node | null): Node {
  return { name, module, parent, children: null, total: 0, self: 0, other: 0, depth: parent ? parent.depth + 1 : 0 };
}

function childOf(node: Node, frame: Frame): Node {
  const name = frameName(frame);
  node.children ??= new Map();
  let child = node.children.get(name);
  if (!child) node.children.set(name, child = makeNode(name, frame.module ?? '', node));
  return child;
}

export type Order = 'down' | 'up';

function put(root: Node, stack: Stack, order: Order, side: 'total' | 'other'): void {
  let node = root;
  root[side] += stack.weight;
  const { frames, weight } = stack;
  for (let i = 0; i < frames.length; i++) {
    node = childOf(node, frames[order === 'down' ? frames.length - 1 - i : i]!);
    node[side] += weight;
  }
  if (side === 'total') node.self += weight;
}

/** Frames come innermost first: top down begins with the last one. */
export function treeOf(stacks: Stack[], order: Order, others: Stack[] = []): Node {
  const root = makeNode('all', '', null);
  for (const stack of stacks) put(root, stack, order, 'total');
  for (const stack of others) put(root, stack, order, 'other');
  return root;
}

/** What is above and below all occurrences of one function: callers of it, and what it calls. */
export function sandwichOf(stacks: Stack[], name: string): { callers: Node; callees: Node } {
  const callers = makeNode(name, '', null);
  const callees = makeNode(name, '', null);
  for (const { frames, weight } of stacks) {
    // The outermost occurrence, so that recursion counts once.
    let at = frames.length - 1;
    while (at >= 0 && frameName(frames[at]!) !== name) at--;
    if (at < 0) continue;
    put(callers, { frames: frames.slice(at + 1), weight }, 'up', 'total');
    put(callees, { frames: frames.slice(0, at), weight }, 'down', 'total');
  }
  return { callers, callees };
}

export interface FunctionSum { name: string; module: string; self: number; total: number }

export function functionsOf(stacks: Stack[]): FunctionSum[] {
  const sums = new Map<string, FunctionSum & { seenIn: number }>();
  stacks.forEach(({ frames, weight }, number) => {
    frames.forEach((frame, i) => {
      const name = frameName(frame);
      let sum = sums.get(name);
      if (!sum) sums.set(name, sum = { name, module: frame.module ?? '', self: 0, total: 0, seenIn: -1 });
      if (i === 0) sum.self += weight;
      // Recursion counts once.
      if (sum.seenIn !== number) sum.total += weight;
      sum.seenIn = number;
    });
  });
  return [...sums.values()].sort((a, b) => b.self - a.self || b.total - a.total);
}

/** How much of all has a frame that matches, each stack once. */
export function matching(root: Node, matches: (name: string) => boolean): number {
  let sum = 0;
  const waiting: Node[] = [root];
  for (let node = waiting.pop(); node; node = waiting.pop()) {
    if (node !== root && matches(node.name)) sum += node.total;
    else node.children?.forEach((child) => waiting.push(child));
  }
  return sum;
}
