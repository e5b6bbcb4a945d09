// SPDX-License-Identifier: Apache-2.0
// The menu of what can leave the page.
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Shown } from '../model/shown';
import { kExports, shareExport, shareHtml, shareLink, sharePng, shareSvg } from '../share';

interface Choice { name: string; about: string; go: () => void }

function choices(shown: Shown | null): Choice[] {
  const link = { name: 'Link', about: 'question, targets, view; no key', go: () => void shareLink() };
  if (!shown) return [link];
  return [
    link,
    { name: 'PNG', about: 'picture of this view', go: () => void sharePng(shown) },
    { name: 'SVG', about: 'the same, to scale', go: () => shareSvg(shown) },
    { name: 'HTML', about: 'one file that opens offline', go: () => shareHtml(shown) },
    ...kExports.map(([to, name, suffix]) => ({ name, about: 'the whole session', go: () => void shareExport(shown, to, suffix) })),
  ];
}

function moved(event: KeyboardEvent): void {
  const by = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
  if (!by) return;
  const items = [...(event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>('[role=menuitem]')];
  const at = items.indexOf(document.activeElement as HTMLElement);
  items[(at + by + items.length) % items.length]?.focus();
  event.preventDefault();
}

export function ShareMenu({ shown }: { shown: Shown | null }): JSX.Element {
  const [open, setOpen] = useState(false);
  const place = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (!open) return undefined;
    place.current!.querySelector<HTMLElement>('[role=menuitem]')?.focus();
    const away = (event: Event): void => { if (!place.current!.contains(event.target as Element)) setOpen(false); };
    addEventListener('pointerdown', away);
    return () => removeEventListener('pointerdown', away);
  }, [open]);
  const close = (): void => {
    setOpen(false);
    button.current?.focus();
  };
  return (
    <div class="menu-place" ref={place} onKeyDown={(event) => { if (event.key === 'Escape' && open) { close(); event.stopPropagation(); } }}>
      <button ref={button} class="plain" aria-haspopup="menu" aria-expanded={open} onClick={() => setOpen(!open)}>Share ▾</button>
      {open && (
        <div class="menu" role="menu" aria-label="Share" onKeyDown={moved}>
          {choices(shown).map((it) => (
            <button key={it.name} role="menuitem" tabIndex={-1} onClick={() => { close(); it.go(); }}><b>{it.name}</b><span class="muted">{it.about}</span></button>
          ))}
        </div>
      )}
    </div>
  );
}
