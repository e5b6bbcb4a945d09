// SPDX-License-Identifier: Apache-2.0
// A canvas that fills its place, sharp on every screen, and draws itself again when it is told or moved.
import type { JSX } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { CanvasSurface, type Surface } from './surface';

export type Draw = (surface: Surface, width: number, height: number) => void;

interface Props {
  draw: Draw;
  label: string;
  height: number;
  onPoint?: (x: number, y: number, width: number, height: number) => void;
  onLeave?: () => void;
  onPick?: (x: number, y: number, width: number, height: number) => void;
  onKey?: (event: KeyboardEvent) => void;
}

export function Canvas(props: Props): JSX.Element {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const place = canvas.current!.parentElement!;
    const watcher = new ResizeObserver(() => setWidth(place.clientWidth));
    watcher.observe(place);
    return () => watcher.disconnect();
  }, []);
  useLayoutEffect(() => {
    if (width > 0) paint(canvas.current!, width, props.height, props.draw);
  });
  const at = (event: MouseEvent, use?: Props['onPoint']): void => {
    const box = canvas.current!.getBoundingClientRect();
    use?.(event.clientX - box.left, event.clientY - box.top, box.width, box.height);
  };
  return (
    <div class="canvas" style={{ height: `${props.height}px` }}>
      <canvas ref={canvas} role="img" aria-label={props.label} tabIndex={0}
        onMouseMove={(event) => at(event, props.onPoint)} onMouseLeave={() => props.onLeave?.()}
        onClick={(event) => at(event, props.onPick)} onKeyDown={(event) => props.onKey?.(event)} />
    </div>
  );
}

function paint(canvas: HTMLCanvasElement, width: number, height: number, draw: Draw): void {
  const scale = window.devicePixelRatio || 1;
  const wide = Math.round(width * scale);
  const high = Math.round(height * scale);
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext('2d')!;
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  draw(new CanvasSurface(context), width, height);
}
