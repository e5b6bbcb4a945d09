// SPDX-License-Identifier: Apache-2.0
// The page begins: token, theme, first picture, stream; then what is loaded later.
import { render } from 'preact';
import { takeToken } from './api';
import { App } from './app';
import { listenToKeys } from './keys';
import { later } from './later';
import { store } from './model/store';
import { applyTheme, change } from './ui';

const token = takeToken();
applyTheme();
render(<App />, document.getElementById('app')!);
listenToKeys();
if (token) store.begin(token);
else change({ asksToken: true });
requestAnimationFrame(() => setTimeout(() => {
  performance.mark('clew-first-picture');
  void later();
}, 0));
