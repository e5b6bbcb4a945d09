// SPDX-License-Identifier: Apache-2.0
// The editor and what starts a session. Until the editor is there, a plain field takes its place.
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { explain, run } from '../actions';
import { post, type Diagnostic, type Edit, type Item, type Language } from '../api';
import type { Editor } from '../editor/editor';
import { useLater } from '../later';
import { change, say, ui, useUi } from '../ui';

let editor: Editor | null = null;

/** Puts text where the cursor is. */
export function insert(text: string): void {
  if (editor) editor.insert(text);
  else change({ text: ui.text + text });
}

async function check(text: string, tell: (found: Diagnostic[] | null) => void): Promise<Diagnostic[]> {
  try {
    const body = { text, language: ui.language, targets: ui.targets };
    const { diagnostics } = await post<{ diagnostics: Diagnostic[] }>('check', body);
    tell(diagnostics);
    return diagnostics;
  } catch {
    tell(null);
    return [];
  }
}

async function complete(text: string, at: number): Promise<{ from: number; to: number; items: Item[] } | null> {
  if (ui.language === 'd') return null;
  return post<{ from: number; to: number; items: Item[] }>('complete', { text, at, targets: ui.targets })
    .catch(() => null);
}

function Host(props: { tell: (found: Diagnostic[] | null) => void }): JSX.Element {
  const host = useRef<HTMLDivElement>(null);
  const module = useLater();
  const { text, language, targets } = useUi();
  useEffect(() => {
    if (!module) return undefined;
    editor = module.makeEditor(host.current!, ui.text, ui.language, {
      changed: (now) => change({ text: now }),
      run: () => void run(),
      explain: () => void explain(),
      check: (now) => check(now, props.tell),
      complete,
    });
    const focus = (): void => editor?.focus();
    document.addEventListener('clew-editor', focus);
    return () => {
      document.removeEventListener('clew-editor', focus);
      editor?.remove();
      editor = null;
    };
  }, [module]);
  useEffect(() => editor?.setText(text), [text]);
  useEffect(() => {
    editor?.setLanguage(language);
    editor?.recheck();
  }, [language, targets]);
  return (
    <>
      <div ref={host} class="editor-host" hidden={!module} />
      {!module && (
        <textarea class="editor-early" aria-label="Query" spellcheck={false} value={text}
          onInput={(event) => change({ text: event.currentTarget.value })} />
      )}
    </>
  );
}

function Fix({ edit }: { edit: Edit }): JSX.Element {
  return (
    <button class="fix" onClick={() => { editor?.apply(edit); editor?.focus(); }}>
      Fix: <code>{edit.insert.trim() || 'remove it'}</code>
    </button>
  );
}

function Status(props: { found: Diagnostic[] | null }): JSX.Element | null {
  const { text } = useUi();
  if (!props.found || text.trim() === '') return <span class="status" />;
  const first = props.found[0];
  if (!first) return <span class="status good">✓ no errors</span>;
  return (
    <span class="status bad" role="status" title={first.message}>
      <span class="status-text">✕ {first.line}:{first.column}: {first.message}</span>
      {first.fix && <Fix edit={first.fix} />}
    </span>
  );
}

function saveNow(): void {
  const name = ui.text.split('\n').find((line) => line.trim())?.trim().slice(0, 60);
  if (!name) return say('there is nothing to save', true);
  const others = ui.saved.filter((it) => it.text !== ui.text);
  change({ saved: [{ name, text: ui.text, language: ui.language }, ...others].slice(0, 100) });
  say('saved in this browser, on the left');
}

function Small(props: { name: string; label: string; hint: string; title: string; value: string;
                        set: (value: string) => void }): JSX.Element {
  return (
    <label class="small-field" title={props.title}>{props.label}
      <input name={props.name} value={props.value} placeholder={props.hint} autocomplete="off" size={4}
        onInput={(event) => props.set(event.currentTarget.value)} />
    </label>
  );
}

export function Question(): JSX.Element {
  const [found, setFound] = useState<Diagnostic[] | null>(null);
  const { language, seconds, overhead } = useUi();
  return (
    <div class="question">
      <Host tell={setFound} />
      <div class="run-bar">
        <button class="primary" onClick={() => void run()} title="Ctrl Enter">Run <kbd>Ctrl ↵</kbd></button>
        <button onClick={() => void explain()} title="Ctrl Shift Enter">Explain</button>
        <button class="plain" onClick={saveNow}>Save</button>
        <Status found={found} />
        <select aria-label="Language" value={language}
          onChange={(event) => change({ language: event.currentTarget.value as Language })}>
          <option value="query">query</option>
          <option value="d">D</option>
        </select>
        <Small name="for" label="for" hint="–" title="How long, as 10s; empty: until it is stopped" value={seconds}
          set={(value) => change({ seconds: value })} />
        <Small name="overhead" label="at most" hint="– %" title="What probes may take of the CPU time, as 3%"
          value={overhead} set={(value) => change({ overhead: value })} />
      </div>
    </div>
  );
}
