// SPDX-License-Identifier: Apache-2.0
// Cluster: there is no call for its machines yet, so this says what there is.
import type { JSX } from 'preact';
import { Empty } from '../parts/empty';

export function Cluster(): JSX.Element {
  return (
    <div class="page">
      <Empty title="This server belongs to no cluster">
        <p>A cluster needs a root, which owns the answers, and a node on each machine:</p>
        <pre>clew root …      once{'\n'}clew node …      on each machine{'\n'}clew run --cluster … "from c in cluster.Return(…) …"</pre>
        <p class="muted">The page does not show a cluster's machines yet. <code>clew results</code> shows its answers.</p>
      </Empty>
    </div>
  );
}
