// SPDX-License-Identifier: Apache-2.0
// The words of queries and of D, for colours alone: what may stand where, the server says.
import { StreamLanguage, type StringStream } from '@codemirror/language';

const kQuery = new Set(('from in where let groupby group by into select new orderby ascending descending take ' +
  'every for events window tumbling hopping session late including open join left on equals within before ' +
  'after with cause as and or not true false null var of like until').split(' '));
const kD = new Set(('BEGIN END ERROR self this if else inline translator typedef struct union enum sizeof ' +
  'provider probe const int long short char unsigned signed void string uint64_t uint32_t int64_t int32_t').split(' '));
const kCalls = new Set(('count sum min max avg stddev quantize lquantize llquantize quantile p50 p90 p95 p99 ' +
  'entry return exception line offset tick begin end syscall syscall_return tracepoint profile kernel ' +
  'kernel_return usdt recording process machine cluster str toplist distinct printf trace printa tracemem ' +
  'stack ustack kstack clear trunc normalize exit copyin copyinstr stringof strlen').split(' '));

interface State { comment: boolean }

function comment(stream: StringStream, state: State): string {
  while (!stream.eol()) {
    if (stream.match('*/')) {
      state.comment = false;
      return 'comment';
    }
    stream.next();
  }
  return 'comment';
}

function token(words: Set<string>, fold: boolean, hashComments: boolean) {
  return (stream: StringStream, state: State): string | null => {
    if (state.comment) return comment(stream, state);
    if (stream.eatSpace()) return null;
    if (stream.match('//') || (hashComments && stream.match('#'))) {
      stream.skipToEnd();
      return 'comment';
    }
    if (stream.match('/*')) {
      state.comment = true;
      return comment(stream, state);
    }
    if (stream.match(/^"(?:[^"\\]|\\.)*"?/) || stream.match(/^'(?:[^'\\]|\\.)*'?/)) return 'string';
    if (stream.match(/^(0x[0-9a-f]+|\d+(\.\d+)?|\.\d+)(ns|us|ms|s|m|h|hz|%|k|M|G)?\b/i)) return 'number';
    const word = stream.match(/^[A-Za-z_@$][\w$]*/) as RegExpMatchArray | null;
    if (!word) {
      stream.next();
      return null;
    }
    const text = fold ? word[0].toLowerCase() : word[0];
    if (stream.match(/^\s*\(/, false) && kCalls.has(text)) return 'atom';
    if (words.has(text)) return 'keyword';
    return text.startsWith('@') ? 'propertyName' : 'variableName';
  };
}

const start = (): State => ({ comment: false });

export const query = StreamLanguage.define<State>({
  name: 'query', startState: start, token: token(kQuery, true, true),
  languageData: { commentTokens: { line: '//', block: { open: '/*', close: '*/' } } },
});

export const d = StreamLanguage.define<State>({
  name: 'd', startState: start, token: token(kD, false, false),
  languageData: { commentTokens: { block: { open: '/*', close: '*/' } } },
});
