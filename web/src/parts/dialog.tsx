// SPDX-License-Identifier: Apache-2.0
// A dialog that keeps the focus, and gives it back.
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

export function Dialog(props: { title: string; onClose: () => void; children: ComponentChildren }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    dialog.current!.showModal();
    return () => before?.focus();
  }, []);
  return (
    <dialog ref={dialog} aria-label={props.title} onCancel={(event) => { event.preventDefault(); props.onClose(); }}>
      <div class="dialog-head">
        <h2>{props.title}</h2>
        <button class="plain" aria-label="Close" onClick={props.onClose}>✕</button>
      </div>
      {props.children}
    </dialog>
  );
}
