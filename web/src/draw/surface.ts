// SPDX-License-Identifier: Apache-2.0
// What charts are drawn on: a canvas, or the text of an SVG file. Both give the same picture.

export type Align = 'left' | 'center' | 'right';

export interface Surface {
  rect(x: number, y: number, width: number, height: number, fill: string): void;
  path(points: [number, number][], stroke: string, width: number): void;
  /** Cut to `room` pixels, if given. */
  text(x: number, y: number, text: string, style: { fill: string; align?: Align; room?: number; bold?: boolean }): void;
}

export const kFont = '12px system-ui, sans-serif';

export class CanvasSurface implements Surface {
  constructor(private readonly context: CanvasRenderingContext2D) {
    context.font = kFont;
    context.textBaseline = 'middle';
  }

  rect(x: number, y: number, width: number, height: number, fill: string): void {
    this.context.fillStyle = fill;
    this.context.fillRect(x, y, width, height);
  }

  path(points: [number, number][], stroke: string, width: number): void {
    this.context.strokeStyle = stroke;
    this.context.lineWidth = width;
    this.context.beginPath();
    points.forEach(([x, y], i) => (i ? this.context.lineTo(x, y) : this.context.moveTo(x, y)));
    this.context.stroke();
  }

  text(x: number, y: number, text: string,
       style: { fill: string; align?: Align; room?: number; bold?: boolean }): void {
    const shown = style.room === undefined ? text : cut(text, style.room);
    if (!shown) return;
    this.context.font = style.bold ? `600 ${kFont}` : kFont;
    this.context.fillStyle = style.fill;
    this.context.textAlign = style.align ?? 'left';
    this.context.fillText(shown, x, y);
  }
}

/** Letters are about this wide; measuring each text would cost more than all else. */
const kLetterPixels = 7;

export function cut(text: string, room: number): string {
  const letters = Math.floor(room / kLetterPixels);
  if (text.length <= letters) return text;
  return letters < 3 ? '' : `${text.slice(0, letters - 1)}…`;
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (it) => `&#${it.charCodeAt(0)};`)
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, '\ufffd');
}

const r = (n: number): string => String(Math.round(n * 100) / 100);

export class SvgSurface implements Surface {
  private readonly parts: string[] = [];

  rect(x: number, y: number, width: number, height: number, fill: string): void {
    this.parts.push(
      `<rect x="${r(x)}" y="${r(y)}" width="${r(width)}" height="${r(height)}" fill="${escaped(fill)}"/>`);
  }

  path(points: [number, number][], stroke: string, width: number): void {
    this.parts.push(`<polyline fill="none" stroke="${escaped(stroke)}" stroke-width="${width}" ` +
                    `points="${points.map(([x, y]) => `${r(x)},${r(y)}`).join(' ')}"/>`);
  }

  text(x: number, y: number, text: string,
       style: { fill: string; align?: Align; room?: number; bold?: boolean }): void {
    const shown = style.room === undefined ? text : cut(text, style.room);
    if (!shown) return;
    const anchor = { left: 'start', center: 'middle', right: 'end' }[style.align ?? 'left'];
    this.parts.push(`<text x="${r(x)}" y="${r(y)}" fill="${escaped(style.fill)}" text-anchor="${anchor}" ` +
                    `${style.bold ? 'font-weight="600" ' : ''}dominant-baseline="central">${escaped(shown)}</text>`);
  }

  file(width: number, height: number): string {
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" ` +
           `viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" font-size="12">` +
           `${this.parts.join('')}</svg>\n`;
  }
}

export { escaped };
