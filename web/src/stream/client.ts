// SPDX-License-Identifier: Apache-2.0
// A tab's end of the stream: through the SharedWorker, or its own where there is none.
import { readOn, type Heard } from './reader';
import { trustedUrl } from '../trusted';

/** Begins to listen; the answer ends it. */
export function listen(token: string, heard: Heard): () => void {
  if (typeof SharedWorker === 'undefined') {
    let over = false;
    void readOn(token, { n: 0 }, heard, () => over);
    return () => { over = true; };
  }
  const worker = new SharedWorker(trustedUrl('/stream-worker.js'), { name: 'clew' });
  worker.port.onmessage = (event) => {
    if (event.data.lines) heard.text(event.data.lines);
    if (event.data.link) heard.link(event.data.link);
  };
  worker.port.postMessage({ token });
  const leave = () => worker.port.postMessage({ leave: true });
  addEventListener('pagehide', leave);
  return leave;
}
