// SPDX-License-Identifier: Apache-2.0
// Asks for the address that clew ui printed, when the token is missing or that of another run.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { setToken } from '../api';
import { store } from '../model/store';
import { change } from '../ui';
import { Dialog } from './dialog';

export function AskToken(): JSX.Element {
  const [text, setText] = useState('');
  const [wrong, setWrong] = useState(false);
  const take = (event: Event): void => {
    event.preventDefault();
    const found = /(?:token=)?([0-9a-f]{32,})$/i.exec(text.trim());
    if (!found) return setWrong(true);
    setToken(found[1]!);
    store.begin(found[1]!);
    change({ asksToken: false, notice: null });
  };
  return (
    <Dialog title="Which server is this?" onClose={() => change({ asksToken: false })}>
      <form class="token" onSubmit={take}>
        <p>This page has no key, or that of an earlier run of Clew. Paste the address that <code>clew ui</code> printed.</p>
        <label for="token">Address</label>
        <input id="token" autocomplete="off" spellcheck={false} value={text} placeholder="http://127.0.0.1:7417/#token=…"
          onInput={(event) => setText(event.currentTarget.value)} aria-invalid={wrong} />
        {wrong && <p class="bad">✕ There is no token in it: it ends with #token= and 64 digits.</p>}
        <button class="primary" type="submit">Connect</button>
      </form>
    </Dialog>
  );
}
