// SPDX-License-Identifier: Apache-2.0
// What leaves the page: a link, pictures, files that the server makes, and a page that opens offline.
import { ApiError, file } from './api';
import { lossText } from './parts/loss_bar';
import { clock, exact, shown as text } from './format';
import type { Shown } from './model/shown';
import { verdictOf } from './model/verdict';
import { kWidth, picture, pngFile, svgFile, type Picture } from './draw/picture';
import { colours } from './draw/colours';
import { escaped } from './draw/surface';
import { isRight } from './views/table';
import { link, say, ui } from './ui';

const kTableRows = 40;
const kFileRows = 5000;

function save(blob: Blob, name: string): void {
  const anchor = document.createElement('a');
  anchor.href = URL.createObjectURL(blob);
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(anchor.href), 10_000);
}

/** The picture of a view without a chart: its table. */
function tablePicture(shown: Shown): Picture {
  const { columns } = shown.table;
  const rows = shown.rows.slice(0, kTableRows);
  return {
    height: (rows.length + 2) * 22,
    draw: (surface, width) => {
      const ink = colours();
      const wide = width / columns.length;
      const line = (values: string[], y: number, bold: boolean): void => values.forEach((value, i) => {
        const right = isRight(columns[i]!);
        surface.text(right ? (i + 1) * wide - 16 : i * wide, y, value, { fill: bold ? ink.muted : ink.text, align: right ? 'right' : 'left', room: wide - 20, bold });
      });
      line(columns.map((it) => `${it.approximate ? '≈ ' : ''}${it.name}`), 11, true);
      rows.forEach((row, i) => {
        surface.rect(0, (i + 1) * 22, width, 1, ink.line);
        line(columns.map((it, j) => text(row[j], it)), (i + 1) * 22 + 11, false);
      });
      if (shown.rows.length > rows.length) surface.text(0, (rows.length + 1) * 22 + 11, `… ${shown.rows.length - rows.length} more rows`, { fill: ink.muted });
    },
  };
}

function question(shown: Shown): string[] {
  const lines = shown.session.text.trim().split('\n').slice(0, 8);
  const when = shown.interval ? `${clock(shown.interval.begin)} to ${clock(shown.interval.end)}` : '';
  return [...lines, [shown.session.head?.host, when].filter(Boolean).join(' · ')].filter(Boolean);
}

const nameOf = (shown: Shown): string => `clew-${shown.session.id}`;

function seen(shown: Shown): Picture {
  return (ui.view === 'table' ? null : picture()) ?? tablePicture(shown);
}

export async function sharePng(shown: Shown): Promise<void> {
  save(await pngFile(seen(shown), question(shown), lossText(verdictOf(shown.session))), `${nameOf(shown)}.png`);
}

export function shareSvg(shown: Shown): void {
  const svg = svgFile(seen(shown), question(shown), lossText(verdictOf(shown.session)));
  save(new Blob([svg], { type: 'image/svg+xml' }), `${nameOf(shown)}.svg`);
}

export async function shareLink(): Promise<void> {
  try {
    await navigator.clipboard.writeText(link());
    say('the link is copied; it has no key, so its reader needs their own access');
  } catch {
    say(`the browser does not let pages copy; the link is ${link()}`, true);
  }
}

function htmlTable(shown: Shown): string {
  const { columns } = shown.table;
  const head = columns.map((it) => `<th>${escaped(`${it.approximate ? '≈ ' : ''}${it.name}`)}</th>`).join('');
  const rows = shown.rows.slice(0, kFileRows).map((row) => `<tr>${columns.map((it, i) =>
    `<td${isRight(it) ? ' class="r"' : ''} title="${escaped(exact(row[i], it))}">${escaped(text(row[i], it))}</td>`).join('')}</tr>`);
  const more = shown.rows.length - kFileRows;
  return `<table><thead><tr>${head}</tr></thead><tbody>${rows.join('\n')}</tbody></table>` +
         (more > 0 ? `<p>… ${more} more rows are not in this file.</p>` : '');
}

/** One file that opens without a server: question, picture, table, and what the answer lacks. */
export function shareHtml(shown: Shown): void {
  const verdict = verdictOf(shown.session);
  const svg = ui.view === 'table' ? '' : svgFile(seen(shown), [], lossText(verdict));
  const why = verdict.why.map((it) => `<li>${escaped(it)}</li>`).join('');
  const html = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Clew: ${escaped(shown.session.text.trim().slice(0, 80))}</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<style>:root{color-scheme:light dark}body{font:14px system-ui,sans-serif;margin:24px auto;max-width:${kWidth}px;padding:0 16px}pre{font:13px ui-monospace,monospace}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}th,td{padding:3px 14px 3px 0;text-align:left;border-bottom:1px solid #8884}.r{text-align:right}svg{max-width:100%;height:auto}</style></head>
<body><h1>Clew</h1><pre>${escaped(question(shown).join('\n'))}</pre><p><b>${escaped(lossText(verdict))}</b></p><ul>${why}</ul>${svg}${htmlTable(shown)}</body></html>\n`;
  save(new Blob([html], { type: 'text/html' }), `${nameOf(shown)}.html`);
}

export const kExports: [string, string, string][] = [
  ['json', 'JSON', 'json'], ['csv', 'CSV', 'csv'], ['sqlite', 'SQLite', 'sqlite'], ['folded', 'Folded stacks', 'folded'],
  ['svg', 'SVG by Clew', 'svg'], ['chrome', 'Chrome trace', 'chrome.json'], ['perfetto', 'Perfetto', 'pftrace'], ['pprof', 'pprof', 'pb.gz'],
];

export async function shareExport(shown: Shown, to: string, suffix: string): Promise<void> {
  try {
    save(await file(`sessions/${shown.session.id}/export?to=${to}`), `${nameOf(shown)}.${suffix}`);
  } catch (error) {
    say(error instanceof ApiError ? error.message : String(error), true);
  }
}
