// SPDX-License-Identifier: Apache-2.0
// The loss bar's first word, and what stands behind it.
import type { Session } from './session';
import { sumOf } from './table';

export type Word = 'exact' | 'exact where traced' | 'approximate' | 'incomplete' | 'no answer';

export interface Verdict {
  word: Word;
  missed: number;
  dropped: number;
  lost: number;
  refused: number;
  /** Each cause in a sentence or two words. */
  why: string[];
}

function causes(what: string, counts: Record<string, number> | undefined): string[] {
  return Object.entries(counts ?? {}).map(([cause, count]) =>
    `${count.toLocaleString('en').replaceAll(',', '\u202f')} ${what}: ${cause.replaceAll('_', ' ')}`);
}

function refusals(session: Session): string[] {
  return (session.losses?.refused ?? []).map((it) => {
    if (typeof it === 'string') return `refused: ${it as string}`;
    const where = [it.module, it.function].filter(Boolean).join('!');
    return `refused: ${where || JSON.stringify(it)}${it.reason ? ` (${it.reason})` : ''}`;
  });
}

function isApproximate(session: Session): boolean {
  for (const table of session.tables.values()) {
    if (table.columns.some((it) => it.approximate)) return true;
  }
  return false;
}

function whyOf(session: Session): string[] {
  const losses = session.losses;
  const why = [...causes('missed', losses?.missed), ...causes('dropped', losses?.dropped),
               ...(losses?.lost ?? [])];
  for (const it of session.disarmed) {
    why.push(`probe removed: ${it.probe ?? it.function ?? '?'}${it.out_of_fuel ? ' (too long)' : ''}`);
  }
  if (session.gapLines) why.push(`${session.gapLines} lines did not reach this page`);
  if (session.leftOut) why.push(`${session.leftOut} rows are not kept by this page`);
  if (session.state === 'ended' && !session.ended) why.push('the stream was cut off');
  return why;
}

export function verdictOf(session: Session): Verdict {
  const losses = session.losses;
  const refused = losses?.refused?.length ?? 0;
  const why = whyOf(session);
  let word: Word = 'exact';
  if (session.error || session.tables.size === 0) word = 'no answer';
  else if (why.length > 0) word = 'incomplete';
  else if (isApproximate(session)) word = 'approximate';
  else if (refused > 0) word = 'exact where traced';
  if (word === 'approximate') why.push('columns with ≈ are computed by a sketch');
  return {
    word,
    missed: sumOf(losses?.missed),
    dropped: sumOf(losses?.dropped),
    lost: (losses?.lost?.length ?? 0) + session.disarmed.length,
    refused,
    why: [...why, ...refusals(session)],
  };
}
