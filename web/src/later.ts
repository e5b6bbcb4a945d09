// SPDX-License-Identifier: Apache-2.0
// What is loaded after the first picture: the editor, and the lines of the Time view.
import { useEffect, useState } from 'preact/hooks';
import type * as Later from './editor/main';

type Module = typeof Later;
let loading: Promise<Module> | null = null;

export function later(): Promise<Module> {
  loading ??= import('./editor.js' as string) as Promise<Module>;
  return loading;
}

export function useLater(): Module | null {
  const [module, setModule] = useState<Module | null>(null);
  useEffect(() => {
    let over = false;
    void later().then((it) => { if (!over) setModule(it); });
    return () => { over = true; };
  }, []);
  return module;
}
