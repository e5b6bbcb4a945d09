// SPDX-License-Identifier: Apache-2.0
// Ask: where, the question, its answer in views, the sessions; what the answer lacks, below.
import type { JSX } from 'preact';
import { Answer } from '../ask/answer';
import { Question } from '../ask/question';
import { SessionList } from '../ask/session_list';
import { Where } from '../ask/where';

export function Ask(): JSX.Element {
  return (
    <div class="ask">
      <aside class="side-left" aria-label="Where"><Where /></aside>
      <section class="middle" aria-label="Question and answer">
        <Question />
        <Answer />
      </section>
      <aside class="side-right" aria-label="Sessions"><SessionList /></aside>
    </div>
  );
}
