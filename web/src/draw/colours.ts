// SPDX-License-Identifier: Apache-2.0
// The colours that canvases use: those of the style sheet, and scales.
import { shownTheme } from '../ui';

export interface Colours {
  text: string;
  muted: string;
  line: string;
  panel: string;
  accent: string;
  warn: string;
  bad: string;
}

export function colours(): Colours {
  const style = getComputedStyle(document.documentElement);
  const of = (name: string): string => style.getPropertyValue(`--${name}`).trim();
  return { text: of('text'), muted: of('muted'), line: of('line'), panel: of('panel'),
           accent: of('accent'), warn: of('warn'), bad: of('bad') };
}

type Rgb = [number, number, number];

const kDark: Rgb[] = [[27, 36, 52], [34, 66, 122], [57, 119, 196], [132, 184, 232], [255, 236, 179]];
const kLight: Rgb[] = [[237, 242, 249], [176, 205, 238], [96, 153, 219], [30, 91, 179], [9, 36, 92]];

/** 0 to 1, from nothing to the most. */
export function heatColour(share: number): string {
  const stops = shownTheme() === 'dark' ? kDark : kLight;
  const at = Math.max(0, Math.min(1, share)) * (stops.length - 1);
  const low = stops[Math.floor(at)]!;
  const high = stops[Math.min(stops.length - 1, Math.floor(at) + 1)]!;
  const part = at - Math.floor(at);
  const mixed = low.map((it, i) => Math.round(it + (high[i]! - it) * part));
  return `rgb(${mixed.join(',')})`;
}

/** Colours of lines, told apart also by their dashes. */
export function seriesColour(index: number): string {
  const dark = shownTheme() === 'dark';
  const hues = dark
    ? ['#7db1ff', '#f0a35e', '#6fd3a0', '#e58fd0', '#d9c45b', '#8fd8e8', '#b9a3ff', '#ff9c94']
    : ['#1b5fc4', '#b25000', '#13784a', '#a3308a', '#7a6500', '#0b7285', '#6541c8', '#b3261e'];
  return hues[index % hues.length]!;
}

export const kDashes = [[], [6, 3], [2, 2], [8, 3, 2, 3]];

function hash(text: string): number {
  let sum = 2166136261;
  for (let i = 0; i < text.length; i++) sum = Math.imul(sum ^ text.charCodeAt(i), 16777619);
  return sum >>> 0;
}

const flameCache = new Map<string, string>();

/** The colour of a function in a flame graph: its module's hue, a little its own. */
export function flameColour(name: string, module: string): string {
  const dark = shownTheme() === 'dark';
  const key = `${dark}${module}\0${name}`;
  let colour = flameCache.get(key);
  if (!colour) {
    const hue = 20 + (hash(module) % 9) * 6;
    const own = hash(name) % 100;
    colour = dark ? `hsl(${hue} ${34 + own % 12}% ${30 + own % 10}%)`
      : `hsl(${hue} ${62 + own % 16}% ${76 + own % 9}%)`;
    if (flameCache.size > 50_000) flameCache.clear();
    flameCache.set(key, colour);
  }
  return colour;
}

/** More (1) or less (-1) than the other side. */
export function differenceColour(share: number): string {
  const dark = shownTheme() === 'dark';
  const size = Math.round(Math.min(1, Math.abs(share)) * 100);
  const base = dark ? '#39414d' : '#e3e6eb';
  const end = share >= 0 ? (dark ? '#d0563f' : '#f08a6c') : (dark ? '#3f7fd0' : '#7fb0f0');
  return mixed(base, end, size / 100);
}

function mixed(from: string, to: string, part: number): string {
  const digit = (text: string, i: number): number => parseInt(text.slice(1 + 2 * i, 3 + 2 * i), 16);
  const values = [0, 1, 2].map((i) => Math.round(digit(from, i) + (digit(to, i) - digit(from, i)) * part));
  return `rgb(${values.join(',')})`;
}
