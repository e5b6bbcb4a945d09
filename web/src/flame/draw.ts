// SPDX-License-Identifier: Apache-2.0
// Draws the boxes of a flame graph.
import { colours, differenceColour, flameColour } from '../draw/colours';
import type { Surface } from '../draw/surface';
import type { Box } from './layout';

export const kFramePixels = 19;
const kTextPixels = 28;

export interface Look {
  matches: ((name: string) => boolean) | null;
  /** Totals of both answers, for a difference. */
  totals: { now: number; other: number } | null;
  chosen: Box | null;
  /** Rows from the bottom up: callers of a sandwich. */
  upwards: boolean;
}

function colourOf(box: Box, look: Look, accent: string): string {
  if (look.matches?.(box.node.name)) return accent;
  if (!look.totals) return flameColour(box.node.name, box.node.module);
  const now = look.totals.now ? box.node.total / look.totals.now : 0;
  const before = look.totals.other ? box.node.other / look.totals.other : 0;
  const size = Math.max(now, before);
  return differenceColour(size ? (now - before) / size : 0);
}

export function drawFlame(surface: Surface, boxes: Box[], height: number, look: Look): void {
  const ink = colours();
  const onAccent = getComputedStyle(document.documentElement).getPropertyValue('--on-accent').trim();
  for (const box of boxes) {
    const y = look.upwards ? height - (box.depth + 1) * kFramePixels : box.depth * kFramePixels;
    const width = Math.max(0.5, box.width - (box.width > 3 ? 1 : 0));
    surface.rect(box.x, y, width, kFramePixels - 1, colourOf(box, look, ink.accent));
    if (box.width < kTextPixels) continue;
    const fill = look.matches?.(box.node.name) ? onAccent : ink.text;
    surface.text(box.x + 5, y + kFramePixels / 2, box.node.name, { fill, room: box.width - 9 });
  }
  if (!look.chosen) return;
  const { x, width, depth } = look.chosen;
  const y = look.upwards ? height - (depth + 1) * kFramePixels : depth * kFramePixels;
  const low = y + kFramePixels - 1;
  surface.path([[x, y], [x + width, y], [x + width, low], [x, low], [x, y]], ink.text, 1.5);
}
