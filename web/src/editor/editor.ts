// SPDX-License-Identifier: Apache-2.0
// The editor: CodeMirror in a shadow root, so that its styles are sheets and none is inline.
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap,
         type CompletionContext, type CompletionResult } from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { bracketMatching, HighlightStyle, syntaxHighlighting } from '@codemirror/language';
import { linter, lintKeymap, type Diagnostic as Mark } from '@codemirror/lint';
import { Compartment, EditorState, Prec } from '@codemirror/state';
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers,
         placeholder } from '@codemirror/view';
import { tags } from '@lezer/highlight';
import type { Diagnostic, Edit, Item, Language } from '../api';
import { d, query } from './words';
import { look } from './look';

export interface EditorEvents {
  changed(text: string): void;
  run(): void;
  explain(): void;
  check(text: string): Promise<Diagnostic[]>;
  complete(text: string, at: number): Promise<{ from: number; to: number; items: Item[] } | null>;
}

export interface Editor {
  setText(text: string): void;
  setLanguage(language: Language): void;
  insert(text: string): void;
  apply(edit: Edit): void;
  /** Asks for diagnostics again: the targets are others. */
  recheck(): void;
  focus(): void;
  remove(): void;
}

const kCheckMs = 300;

const highlight = HighlightStyle.define([
  { tag: tags.keyword, class: 'word-keyword' },
  { tag: tags.atom, class: 'word-call' },
  { tag: tags.string, class: 'word-string' },
  { tag: tags.number, class: 'word-number' },
  { tag: tags.comment, class: 'word-comment' },
  { tag: tags.propertyName, class: 'word-property' },
]);

/** The browser's own way to type over several lines leaves inline styles, which the page forbids. */
const typeOver = EditorView.domEventHandlers({
  beforeinput: (event, view) => {
    const { main } = view.state.selection;
    const lines = view.state.doc.lineAt(main.from).number !== view.state.doc.lineAt(main.to).number;
    if (!lines || event.isComposing || event.inputType !== 'insertText' || event.data === null) return false;
    view.dispatch(view.state.replaceSelection(event.data), { userEvent: 'input.type', scrollIntoView: true });
    event.preventDefault();
    return true;
  },
});

const kKinds: Record<string, string> = {
  provider: 'namespace', field: 'property', function: 'function', keyword: 'keyword', aggregate: 'method',
  process: 'class', name: 'variable',
};

function marks(found: Diagnostic[], size: number): Mark[] {
  return found.map((it) => {
    const from = Math.min(it.from, size);
    const to = Math.min(Math.max(it.to, from), size);
    const fix = it.fix;
    return {
      from, to, message: it.message, severity: it.severity === 'warning' ? 'warning' : 'error',
      actions: fix ? [{
        name: `Replace by ${fix.insert.trim() || 'nothing'}`,
        apply: (view) => view.dispatch({ changes: fix }),
      }] : [],
    };
  });
}

async function completed(context: CompletionContext, events: EditorEvents): Promise<CompletionResult | null> {
  const before = context.matchBefore(/[\w"!.*@$:]+/);
  if (!before && !context.explicit) return null;
  const answer = await events.complete(context.state.doc.toString(), context.pos);
  if (!answer || answer.items.length === 0) return null;
  return {
    from: answer.from, to: answer.to, validFor: /^\w*$/,
    options: answer.items.map((it) => ({
      label: it.label, type: kKinds[it.kind] ?? 'text',
      ...(it.detail ? { detail: it.detail } : {}),
      ...(it.insert !== undefined ? { apply: it.insert } : {}),
    })),
  };
}

export function makeEditor(place: HTMLElement, text: string, language: Language,
                           events: EditorEvents): Editor {
  const root = place.shadowRoot ?? place.attachShadow({ mode: 'open' });
  const languages = new Compartment();
  const lint = new Compartment();
  const makeLint = () => linter(async (view) => {
    const asked = view.state.doc.toString();
    return marks(asked.trim() ? await events.check(asked) : [], asked.length);
  }, { delay: kCheckMs });
  const keys = Prec.highest(keymap.of([
    { key: 'Ctrl-Enter', mac: 'Cmd-Enter', run: () => (events.run(), true) },
    { key: 'Ctrl-Shift-Enter', run: () => (events.explain(), true) },
  ]));
  let quiet = false;
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: text,
      extensions: [
        keys, typeOver, lineNumbers(), history(), drawSelection(), bracketMatching(), closeBrackets(),
        highlightActiveLine(), EditorView.lineWrapping, syntaxHighlighting(highlight), look,
        placeholder('from c in return("redis-server!*Command") group by c.function select c.function, count() every 1s'),
        languages.of(language === 'd' ? d : query), lint.of(makeLint()),
        autocompletion({ override: [(context) => completed(context, events)], icons: false }),
        keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...completionKeymap,
                   ...lintKeymap]),
        EditorView.contentAttributes.of({ 'aria-label': 'Query' }),
        EditorView.updateListener.of((update) => {
          if (update.docChanged && !quiet) events.changed(update.state.doc.toString());
        }),
      ],
    }),
  });
  return {
    setText: (next) => {
      if (next === view.state.doc.toString()) return;
      quiet = true;
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next } });
      quiet = false;
    },
    setLanguage: (next) => view.dispatch({ effects: languages.reconfigure(next === 'd' ? d : query) }),
    insert: (what) => {
      view.dispatch(view.state.replaceSelection(what));
      view.focus();
    },
    apply: (edit) => view.dispatch({ changes: edit }),
    recheck: () => view.dispatch({ effects: lint.reconfigure(makeLint()) }),
    focus: () => view.focus(),
    remove: () => view.destroy(),
  };
}
