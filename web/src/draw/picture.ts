// SPDX-License-Identifier: Apache-2.0
// The picture of the view that is seen, for files: the chart, with its question and what it lacks.
import { useEffect } from 'preact/hooks';
import type { Draw } from './canvas';
import { colours } from './colours';
import { CanvasSurface, SvgSurface, type Surface } from './surface';

export interface Picture { draw: Draw; height: number }

/** As a view gives it; its height is computed when a file is made. */
interface Seen { draw: Draw; height: number | (() => number) }

let seen: Seen | null = null;

/** Says what the view shows now. */
export function usePicture(draw: Draw, height: Seen['height']): void {
  useEffect(() => {
    const mine: Seen = { draw, height };
    seen = mine;
    return () => { if (seen === mine) seen = null; };
  });
}

export function picture(): Picture | null {
  if (!seen) return null;
  const { draw, height } = seen;
  return { draw, height: typeof height === 'number' ? height : height() };
}

export const kWidth = 1200;
const kMargin = 20;
const kLine = 18;

function whole(surface: Surface, it: Picture, question: string[], losses: string): number {
  const ink = colours();
  const top = kMargin + question.length * kLine + 8;
  const height = top + it.height + 12 + kLine + kMargin;
  surface.rect(0, 0, kWidth, height, ink.panel);
  question.forEach((line, i) => surface.text(kMargin, kMargin + i * kLine + kLine / 2, line, { fill: ink.text, room: kWidth - 2 * kMargin }));
  it.draw(shifted(surface, kMargin, top), kWidth - 2 * kMargin, it.height);
  surface.text(kMargin, height - kMargin - kLine / 2, losses, { fill: ink.text, bold: true });
  return height;
}

function shifted(surface: Surface, dx: number, dy: number): Surface {
  return {
    rect: (x, y, width, height, fill) => surface.rect(x + dx, y + dy, width, height, fill),
    path: (points, stroke, width) => surface.path(points.map(([x, y]) => [x + dx, y + dy]), stroke, width),
    text: (x, y, text, style) => surface.text(x + dx, y + dy, text, style),
  };
}

const heightOf = (it: Picture, question: string[]): number =>
  kMargin + question.length * kLine + 8 + it.height + 12 + kLine + kMargin;

export function svgFile(it: Picture, question: string[], losses: string): string {
  const surface = new SvgSurface();
  const height = whole(surface, it, question, losses);
  return surface.file(kWidth, height);
}

export async function pngFile(it: Picture, question: string[], losses: string): Promise<Blob> {
  const canvas = document.createElement('canvas');
  canvas.width = kWidth * 2;
  canvas.height = heightOf(it, question) * 2;
  const context = canvas.getContext('2d')!;
  context.scale(2, 2);
  whole(new CanvasSurface(context), it, question, losses);
  return new Promise((resolve, reject) =>
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error('no picture'))), 'image/png'));
}
