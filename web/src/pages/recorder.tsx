// SPDX-License-Identifier: Apache-2.0
// Recorder: the snaps of the server's folder, and one of them on the whole screen.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { get } from '../api';
import { Empty } from '../parts/empty';
import { Player } from '../recorder/player';
import type { Snap, SnapInfo } from '../recorder/snap';
import { clock } from '../format';
import { useUi } from '../ui';

const kLast = 5000;

function taken(it: SnapInfo): string {
  if (!it.taken) return '–';
  if (!/^\d+$/.test(it.taken)) return it.taken;
  const date = new Date(Number(BigInt(it.taken) / 1_000_000n));
  const two = (n: number): string => String(n).padStart(2, '0');
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${clock(BigInt(it.taken))}`;
}

function List({ snaps, onOpen }: { snaps: SnapInfo[]; onOpen: (name: string) => void }): JSX.Element {
  return (
    <table class="numbers">
      <thead><tr><th scope="col">snap</th><th scope="col" class="right">process</th><th scope="col">reason</th><th scope="col" class="right">taken</th><th scope="col"><span class="unseen">actions</span></th></tr></thead>
      <tbody>
        {snaps.map((it) => (
          <tr key={it.name}><th scope="row" class="name-cell"><button class="plain code" title={it.file} onClick={() => onOpen(it.name)}>{it.name}</button></th>
            <td class="right">{it.process ?? '–'}</td><td>{it.reason ?? '–'}</td><td class="right">{taken(it)}</td>
            <td class="do"><button onClick={() => onOpen(it.name)}>Open</button></td></tr>
        ))}
      </tbody>
    </table>
  );
}

export function Recorder(): JSX.Element {
  const [snaps, setSnaps] = useState<SnapInfo[] | null>(null);
  const [open, setOpen] = useState<{ name: string; snap: Snap | null } | null>(null);
  const [error, setError] = useState('');
  const { asksToken } = useUi();
  useEffect(() => {
    if (!asksToken) get<{ snaps: SnapInfo[] }>('snaps').then((it) => setSnaps(it.snaps), (it: Error) => setError(it.message));
  }, [asksToken]);
  const show = (name: string): void => {
    setOpen({ name, snap: null });
    setError('');
    get<Snap>(`snaps/${encodeURIComponent(name)}/path?last=${kLast}`).then((snap) => setOpen({ name, snap }),
      (it: Error) => { setOpen(null); setError(`${name}: ${it.message}`); });
  };
  if (open?.snap && open.snap.threads.length > 0) return <Player name={open.name} snap={open.snap} onClose={() => setOpen(null)} />;
  return (
    <div class="page">
      <h2>Snaps of the flight recorder</h2>
      {error && <p class="bad message">✕ {error}</p>}
      {open && <Empty title={open.snap ? 'The snap has no threads' : 'Reading the snap…'} />}
      {!open && snaps && snaps.length > 0 && <List snaps={snaps} onOpen={show} />}
      {!open && snaps?.length === 0 && (
        <Empty title="No snap in this folder"><p>Record a program until it crashes, or take a snap of one that runs:</p>
          <pre>clew record -- ./program{'\n'}clew snap -p PID</pre><p class="muted">Start <code>clew ui --snaps DIR</code> to look into another folder.</p></Empty>
      )}
    </div>
  );
}
