// SPDX-License-Identifier: Apache-2.0
// Values as people read them. What a file or a tooltip needs exactly, exact() gives.
import type { Bucket, Column, Frame, TopItem, Value } from './stream/lines';

const kThin = '\u202f';

export function grouped(digits: string): string {
  return digits.replace(/\B(?=(\d{3})+(?!\d))/g, kThin);
}

export function count(n: number): string {
  if (!Number.isFinite(n)) return String(n);
  const whole = Math.trunc(Math.abs(n));
  return (n < 0 ? '−' : '') + grouped(String(whole));
}

/** 1.4 M, 88.1 k, 312 */
export function short(n: number): string {
  const size = Math.abs(n);
  for (const [limit, unit] of [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e4, 'k']] as const) {
    const scale = unit === 'k' ? 1e3 : limit;
    if (size >= limit) return `${(n / scale).toFixed(1)}${kThin}${unit}`;
  }
  return Number.isInteger(n) ? count(n) : real(n);
}

const kTimes = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs']] as const;

/** 74 ns, 1.8 µs, 75.8 µs, 1.2 ms, 3.0 s */
export function duration(ns: number): string {
  const size = Math.abs(ns);
  const sign = ns < 0 ? '−' : '';
  for (const [scale, unit] of kTimes) {
    if (size >= scale * 0.99995) return `${sign}${grouped1(size / scale)}${kThin}${unit}`;
  }
  const digits = Number.isInteger(size) ? String(size) : size.toFixed(1);
  return `${sign}${digits}${kThin}ns`;
}

function grouped1(n: number): string {
  const [whole, part] = n.toFixed(1).split('.');
  return `${grouped(whole!)}.${part}`;
}

export function real(n: number): string {
  if (!Number.isFinite(n)) return String(n);
  const size = Math.abs(n);
  if (size !== 0 && (size < 0.001 || size >= 1e15)) return n.toExponential(3);
  const [whole, part] = size.toFixed(size < 1 ? 4 : 2).split('.');
  return `${n < 0 ? '−' : ''}${grouped(whole!)}${part ? `.${part}` : ''}`;
}

export function percent(share: number): string {
  if (share > 0 && share < 0.0005) return `< 0.1${kThin}%`;
  return `${(share * 100).toFixed(1)}${kThin}%`;
}

const two = (n: number): string => String(n).padStart(2, '0');

/** The time of day, 24 hours, of nanoseconds since 1970. */
export function clock(ns: bigint, digits = 0): string {
  const date = new Date(Number(ns / 1_000_000n));
  const day = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  if (digits === 0) return day;
  return `${day}.${String(ns % 1_000_000_000n).padStart(9, '0').slice(0, digits)}`;
}

export function elapsedSince(ns: string | undefined, until = Date.now()): string {
  if (!ns) return '';
  const seconds = Math.max(0, Math.floor(until / 1000 - Number(BigInt(ns) / 1_000_000_000n)));
  const hours = Math.floor(seconds / 3600);
  const rest = `${two(Math.floor((seconds % 3600) / 60))}:${two(seconds % 60)}`;
  return hours ? `${hours}:${rest}` : rest.replace(/^0/, '');
}

export function frameName(frame: Frame): string {
  if (frame.symbol) return frame.symbol;
  const at = frame.address === undefined ? '?' : `0x${BigInt(frame.address).toString(16)}`;
  return frame.module ? `${frame.module}+${at}` : at;
}

export function bucketLabel(bucket: Bucket, unit?: string): string {
  const show = (n: number): string => number(n, unit);
  if (bucket.value !== undefined) return show(bucket.value);
  if (bucket.below !== undefined) return `< ${show(bucket.below)}`;
  if (bucket.at_least !== undefined) return `≥ ${show(bucket.at_least)}`;
  if (bucket.at_most !== undefined) return `≤ ${show(bucket.at_most)}`;
  return `≈ ${show(bucket.around ?? 0)}`;
}

export function number(n: number, unit?: string): string {
  if (unit === 'ns') return duration(n);
  return Number.isInteger(n) ? count(n) : real(n);
}

export const isNumeric = (column: Column): boolean =>
  ['integer', 'unsigned', 'float', 'time', 'address'].includes(column.type);

/** A value as a number, or null where it is none. */
export function numeric(value: Value | undefined): number | null {
  if (typeof value === 'number') return value;
  if (typeof value === 'boolean') return value ? 1 : 0;
  if (typeof value === 'string' && value !== '') {
    const n = Number(value);
    return Number.isNaN(n) ? null : n;
  }
  return null;
}

function listed(value: Value[] | Bucket[] | TopItem[] | Frame[], column: Column): string {
  if (value.length === 0) return '–';
  if (column.type === 'stack') {
    const names = (value as Frame[]).map(frameName);
    return names.length > 3 ? `${names.slice(0, 3).join(' ← ')} ← … ${names.length - 3} more`
      : names.join(' ← ');
  }
  if (column.type === 'toplist') {
    const of = { ...column, type: 'string' };
    return (value as TopItem[]).map((it) => `${shown(it.value, of)} (${count(it.count)})`).join(', ');
  }
  return (value as Bucket[]).map((it) => `${bucketLabel(it, column.unit)}: ${count(it.count)}`)
    .join('  ');
}

/** A value as a view shows it. */
export function shown(value: Value | undefined, column: Column): string {
  if (value === null || value === undefined) return '–';
  if (typeof value === 'boolean') return value ? 'true' : 'false';
  if (Array.isArray(value)) return listed(value, column);
  if (typeof value === 'object') return `0x${value.hex}`;
  if (column.type === 'time') return clock(BigInt(value), 6);
  if (column.type === 'address') return `0x${BigInt(value).toString(16)}`;
  if (!isNumeric(column)) return String(value);
  if (typeof value === 'number') return number(value, column.unit);
  if (column.unit === 'ns') return duration(Number(value));
  return /^-?\d+$/.test(value) ? value.replace(/\d+/, grouped) : value;
}

/** A value as --json has it, for tooltips and copies. */
export function exact(value: Value | undefined, column: Column): string {
  if (value === null || value === undefined) return 'none';
  if (typeof value === 'object') return JSON.stringify(value);
  return column.unit && typeof value === 'number' ? `${value} ${column.unit}` : String(value);
}
