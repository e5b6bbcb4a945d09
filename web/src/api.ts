// SPDX-License-Identifier: Apache-2.0
// The calls of the server, with the token; a problem becomes an ApiError.
import type { Losses, State } from './stream/lines';

const kTokenKey = 'clew-token';

export interface Place { line: number; column: number; length?: number }

export class ApiError extends Error {
  constructor(readonly status: number, readonly title: string, message: string,
              readonly place?: Place, readonly fix?: string) {
    super(message);
  }
}

/** Takes the token out of the address, where it stands once, and keeps it. */
export function takeToken(): string {
  const fragment = new URLSearchParams(location.hash.slice(1));
  const given = fragment.get('token');
  if (given) {
    localStorage.setItem(kTokenKey, given);
    fragment.delete('token');
    const rest = fragment.toString();
    history.replaceState(null, '', location.pathname + (rest ? `#${rest}` : ''));
  }
  return localStorage.getItem(kTokenKey) ?? '';
}

export function setToken(token: string): void {
  localStorage.setItem(kTokenKey, token);
}

async function ask(method: string, path: string, body?: unknown): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(`/api/v1/${path}`, {
      method,
      cache: 'no-store',
      headers: {
        Authorization: `Bearer ${localStorage.getItem(kTokenKey) ?? ''}`,
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  } catch {
    throw new ApiError(0, 'no answer', 'the server does not answer; is clew ui still running?');
  }
  if (answer.ok) return answer;
  const problem = await answer.json().catch(() => ({})) as
    { title?: string; detail?: string; place?: Place; fix?: string };
  throw new ApiError(answer.status, problem.title ?? answer.statusText,
                     problem.detail ?? problem.title ?? `status ${answer.status}`, problem.place,
                     problem.fix);
}

export async function get<T>(path: string): Promise<T> {
  return (await ask('GET', path)).json() as Promise<T>;
}

export async function post<T>(path: string, body: unknown): Promise<T> {
  return (await ask('POST', path, body)).json() as Promise<T>;
}

export async function remove(path: string): Promise<void> {
  await ask('DELETE', path);
}

export async function file(path: string): Promise<Blob> {
  return (await ask('GET', path)).blob();
}

export type Language = 'query' | 'd';
export type Target = { pid: number } | { name: string } | { command: string[] };
export interface Question { text: string; language: Language; targets: Target[] }
export interface Options { for?: string; max_overhead?: string; follow?: boolean }

export interface SessionInfo extends Question {
  id: string;
  state: State;
  started: string;
  lines: number;
  losses?: Losses;
  error?: { message?: string } | string | null;
}

export interface Process {
  pid: number;
  comm: string;
  user?: string;
  command?: string;
  started?: string;
}

export interface Check {
  about?: string;
  check: string;
  detail?: string;
  verdict: string;
  refused?: string;
  to_do?: string;
}

export interface Machine {
  clew: string;
  host: string;
  user: string;
  checks: Check[];
  commands_allowed: boolean;
}

export interface Listed { function?: string; module?: string; signature?: string; [key: string]: unknown }

export interface Example { title: string; query: string; language: Language; about?: string }

export interface Edit { from: number; to: number; insert: string }

export interface Diagnostic {
  from: number;
  to: number;
  line: number;
  column: number;
  severity: string;
  message: string;
  fix?: Edit;
}

export interface Item { label: string; kind: string; detail?: string; insert?: string }

export interface Explained {
  tiers: { tier: string; what: string }[];
  raw?: Record<string, unknown>[];
  error?: string | { message?: string } | null;
}
