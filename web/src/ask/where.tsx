// SPDX-License-Identifier: Apache-2.0
// Where: processes, what can be traced in them, fields of events, saved queries and examples.
import type { JSX } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { targetName } from '../actions';
import { get, post, type Example, type Item, type Listed, type Process, type Target } from '../api';
import { count } from '../format';
import { change, ui, useUi } from '../ui';
import { insert } from './question';
import { Section } from './section';

const kShownMax = 200;
const kAskMs = 250;

/** What a call gives, asked again when `path` is another; null while it is on its way. */
function useAnswer<T>(path: string | null): { value: T | null; error: string | null } {
  const [answer, setAnswer] = useState<{ value: T | null; error: string | null }>({ value: null, error: null });
  const { asksToken } = useUi();
  useEffect(() => {
    if (!path || asksToken) return undefined;
    let over = false;
    const timer = setTimeout(() => {
      get<T>(path).then(
        (value) => { if (!over) setAnswer({ value, error: null }); },
        (error: Error) => { if (!over) setAnswer({ value: null, error: error.message }); });
    }, kAskMs);
    return () => { over = true; clearTimeout(timer); };
  }, [path, asksToken]);
  return answer;
}

function has(targets: Target[], pid: number): boolean {
  return targets.some((it) => 'pid' in it && it.pid === pid);
}

function toggle(pid: number): void {
  change({ targets: has(ui.targets, pid) ? ui.targets.filter((it) => !('pid' in it && it.pid === pid))
    : [...ui.targets, { pid }] });
}

function Chips({ names }: { names: Map<number, string> }): JSX.Element {
  const { targets } = useUi();
  return (
    <ul class="chips" aria-label="Chosen">
      {targets.map((it, i) => {
        const name = 'pid' in it ? `${names.get(it.pid) ?? 'pid'} ${it.pid}` : targetName(it);
        return (
          <li key={name}><span title={name}>{name}</span>
            <button class="plain" aria-label={`Leave ${name} out`} onClick={() => change({ targets: targets.filter((_, j) => j !== i) })}>✕</button>
          </li>
        );
      })}
    </ul>
  );
}

function matches(process: Process, words: string[]): boolean {
  const all = `${process.pid} ${process.comm} ${process.user ?? ''} ${process.command ?? ''}`.toLowerCase();
  return words.every((word) => all.includes(word));
}

function ProcessList({ processes, search }: { processes: Process[]; search: string }): JSX.Element {
  const { targets } = useUi();
  const found = useMemo(() => {
    const words = search.toLowerCase().split(/\s+/).filter(Boolean);
    return processes.filter((it) => matches(it, words)).sort((a, b) => b.pid - a.pid);
  }, [processes, search]);
  if (found.length === 0) return <p class="hint">No process has these words.</p>;
  return (
    <ul class="lines picks">
      {found.slice(0, kShownMax).map((it) => (
        <li key={it.pid}>
          <button aria-pressed={has(targets, it.pid)} title={it.command || it.comm} onClick={() => toggle(it.pid)}>
            <span class="pick-name">{it.comm}</span><span class="muted pick-pid">{it.pid}</span>
            <span class="muted pick-more">{it.user}{it.command ? ` · ${it.command}` : ''}</span>
          </button>
        </li>
      ))}
      {found.length > kShownMax && <li class="hint">… {count(found.length - kShownMax)} more; type to narrow</li>}
    </ul>
  );
}

function Processes(): JSX.Element {
  const [search, setSearch] = useState('');
  const [turn, setTurn] = useState(0);
  const { value, error } = useAnswer<{ processes: Process[] }>(`processes?turn=${turn}`);
  const names = useMemo(() => new Map((value?.processes ?? []).map((it) => [it.pid, it.comm])), [value]);
  return (
    <Section title="Processes" count={value?.processes.length}
      action={<button class="plain" title="Look again" aria-label="Look for processes again" onClick={() => setTurn(turn + 1)}>⟳</button>}>
      <Chips names={names} />
      <input id="search-processes" type="search" aria-label="Search processes" placeholder="process, pid, user…"
        value={search} onInput={(event) => setSearch(event.currentTarget.value)} spellcheck={false} />
      {error && <p class="hint warn">{error}</p>}
      {value && <ProcessList processes={value.processes} search={search} />}
    </Section>
  );
}

function catalogPath(targets: Target[], pattern: string): string | null {
  const first = targets[0];
  if (!first || 'command' in first) return null;
  const where = 'pid' in first ? `pid=${first.pid}` : `name=${encodeURIComponent(first.name)}`;
  const glob = pattern.trim() === '' ? '*' : /[*?\[!]/.test(pattern) ? pattern.trim() : `*${pattern.trim()}*`;
  return `catalog?${where}&pattern=${encodeURIComponent(glob)}`;
}

function use(it: Listed): void {
  const name = `${it.module ? `${it.module}!` : ''}${it.function}`;
  if (ui.text.trim() !== '') return insert(`"${name}"`);
  change({ text: `from c in return("${name}")\ngroup by c.function\nselect c.function, calls = count(), spread = quantize(c.elapsed)\nevery 1s` });
}

function Functions(): JSX.Element {
  const { targets } = useUi();
  const [pattern, setPattern] = useState('');
  const { value, error } = useAnswer<{ functions: Listed[]; truncated: boolean }>(catalogPath(targets, pattern));
  const functions = targets.length > 0 ? value?.functions : undefined;
  return (
    <Section title="Functions" count={functions?.length} more={value?.truncated}>
      {targets.length === 0 ? <p class="hint">Choose a process to see its functions.</p> : (
        <>
          <input id="search-functions" type="search" aria-label="Search functions" placeholder="filter: module!*name*"
            value={pattern} onInput={(event) => setPattern(event.currentTarget.value)} spellcheck={false} />
          {error && <p class="hint warn">{error}</p>}
          <ul class="lines picks">
            {(functions ?? []).slice(0, kShownMax).map((it, i) => (
              <li key={i}>
                <button title={String(it.signature ?? it.function)} onClick={() => use(it)}>
                  <span class="pick-name code">{it.function}</span><span class="muted pick-more">{it.module}</span>
                </button>
              </li>
            ))}
            {functions && functions.length > kShownMax && <li class="hint">… {count(functions.length - kShownMax)} more; type to narrow</li>}
          </ul>
        </>
      )}
    </Section>
  );
}

const kSource = /\bfrom\s+\w+\s+in\s+([^\n]*?\)|[\w.]+)\s/i;

function Fields(): JSX.Element | null {
  const { text, language } = useUi();
  const source = language === 'query' ? kSource.exec(`${text}\n`)?.[1] : undefined;
  const [items, setItems] = useState<Item[]>([]);
  useEffect(() => {
    if (!source) return undefined;
    let over = false;
    const timer = setTimeout(() => {
      const asked = `from e in ${source} select e.`;
      post<{ items: Item[] }>('complete', { text: asked, at: asked.length, targets: ui.targets })
        .then((it) => { if (!over) setItems(it.items.filter((item) => item.kind === 'field')); }, () => {});
    }, kAskMs);
    return () => { over = true; clearTimeout(timer); };
  }, [source]);
  if (!source || items.length === 0) return null;
  return (
    <Section title="Fields of its events" count={items.length} closed>
      <ul class="lines picks">
        {items.map((it) => (
          <li key={it.label}><button title={it.detail ?? it.label} onClick={() => insert(it.insert ?? it.label)}>
            <span class="pick-name code">{it.label}</span><span class="muted pick-more">{it.detail}</span></button></li>
        ))}
      </ul>
    </Section>
  );
}

function SavedQueries(): JSX.Element | null {
  const { saved } = useUi();
  if (saved.length === 0) return null;
  return (
    <Section title="Saved" count={saved.length}>
      <ul class="lines picks">
        {saved.map((it) => (
          <li key={it.text} class="with-remove">
            <button title={it.text} onClick={() => change({ text: it.text, language: it.language })}><span class="pick-name">{it.name}</span></button>
            <button class="plain" aria-label={`Forget ${it.name}`} onClick={() => change({ saved: saved.filter((one) => one !== it) })}>✕</button>
          </li>
        ))}
      </ul>
    </Section>
  );
}

function Examples(): JSX.Element {
  const [words, setWords] = useState('');
  const { value, error } = useAnswer<{ examples: Example[] }>(`examples?words=${encodeURIComponent(words)}`);
  return (
    <Section title="Examples" count={value?.examples.length}>
      <input type="search" aria-label="Search examples" placeholder="redis slow…" value={words}
        onInput={(event) => setWords(event.currentTarget.value)} />
      {error && <p class="hint warn">{error}</p>}
      <ul class="lines picks">
        {(value?.examples ?? []).slice(0, kShownMax).map((it) => (
          <li key={it.title}>
            <button title={it.about ?? it.title} onClick={() => change({ text: it.query.trimEnd(), language: it.language })}>
              <span class="pick-name">{it.about || it.title}</span>
              <span class="muted pick-more">{it.title}</span>
            </button>
          </li>
        ))}
      </ul>
    </Section>
  );
}

export function Where(): JSX.Element {
  return <><Processes /><Functions /><Fields /><SavedQueries /><Examples /></>;
}
