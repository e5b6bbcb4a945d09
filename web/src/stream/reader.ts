// SPDX-License-Identifier: Apache-2.0
// Reads the server's stream of lines, and again after a break, from the line behind the last one.

export interface Heard {
  /** Whole lines, each with its end. */
  text(lines: string): void;
  link(state: Link): void;
}

export type Link = 'open' | 'broken' | 'unauthorized';

const kRetryMs = 1000;
const kNumber = /"n":(\d+)/;

/** Where a reader is in the numbering of all lines. */
export interface Place { n: number }

export function numberOf(line: string): number {
  const found = kNumber.exec(line.length > 200 && !line.startsWith('{"n"') ? line : line.slice(0, 200));
  return found ? Number(found[1]) : 0;
}

function lastNumber(lines: string): number {
  const start = lines.lastIndexOf('\n', lines.length - 2) + 1;
  return numberOf(lines.slice(start));
}

/** Reads once, until the stream ends, breaks, or `done` says that it is enough. */
export async function readOnce(token: string, place: Place, heard: Heard,
                               done: () => boolean): Promise<void> {
  const stop = new AbortController();
  const answer = await fetch(`/api/v1/stream?after=${place.n}`, {
    headers: { Authorization: `Bearer ${token}` }, signal: stop.signal, cache: 'no-store',
  });
  if (answer.status === 401) return heard.link('unauthorized');
  if (!answer.ok || !answer.body) throw new Error(`status ${answer.status}`);
  heard.link('open');
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  while (!done()) {
    const part = await reader.read();
    if (part.done) return;
    const end = part.value.lastIndexOf('\n');
    if (end < 0) {
      rest += part.value;
      continue;
    }
    const lines = rest + part.value.slice(0, end + 1);
    rest = part.value.slice(end + 1);
    place.n = Math.max(place.n, lastNumber(lines));
    heard.text(lines);
  }
  stop.abort();
}

/** Reads for as long as `done` does not say that it is enough. */
export async function readOn(token: string, place: Place, heard: Heard,
                             done: () => boolean): Promise<void> {
  let unauthorized = false;
  const watched: Heard = {
    text: heard.text,
    link: (state) => {
      unauthorized = state === 'unauthorized';
      heard.link(state);
    },
  };
  while (!done() && !unauthorized) {
    try {
      await readOnce(token, place, watched, done);
    } catch {
      // The server ended, or the machine slept: the next attempt tells.
    }
    if (unauthorized || done()) return;
    heard.link('broken');
    await new Promise((resolve) => setTimeout(resolve, kRetryMs));
  }
}
