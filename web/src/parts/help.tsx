// SPDX-License-Identifier: Apache-2.0
// The keys, shown by "?".
import type { JSX } from 'preact';
import { kKeys } from '../keys';
import { change } from '../ui';
import { Dialog } from './dialog';

export function Help(): JSX.Element {
  return (
    <Dialog title="Keys" onClose={() => change({ help: false })}>
      <table class="keys"><tbody>
        {kKeys.map(([key, what]) => <tr key={key}><th scope="row"><kbd>{key}</kbd></th><td>{what}</td></tr>)}
      </tbody></table>
    </Dialog>
  );
}
