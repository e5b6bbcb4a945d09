#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
import unittest

import score

A, B, C = (f"h{i:016x}" for i in (1, 2, 3))


def judged(rows, sent):
    return score.judge("hop", rows, set(sent), {"by_cause": {"sound": 2}})


def pair(front, behind):
    return {"front": front and f"GET /t/{front} HTTP/1.1", "behind": f"hops:{behind}"}


class TheJudge(unittest.TestCase):
    def test_counts_pairs_with_the_same_id_as_right(self):
        found = judged([pair(A, A), pair(B, B)], [A, B])
        self.assertEqual((found.right, found.wrong, found.orphans, found.missing), (2, 0, 0, 0))
        self.assertEqual((found.precision, found.recall), (1.0, 1.0))

    def test_counts_pairs_with_two_ids_as_wrong(self):
        found = judged([pair(B, A), pair(B, B)], [A, B])
        self.assertEqual((found.right, found.wrong), (1, 1))
        self.assertEqual((found.precision, found.recall), (0.5, 1.0))

    def test_takes_a_front_without_an_id_as_wrong(self):
        found = judged([{"front": "GET / HTTP/1.1", "behind": A}], [A])
        self.assertEqual((found.right, found.wrong), (0, 1))

    def test_takes_a_front_whose_id_was_not_sent_as_wrong(self):
        self.assertEqual(judged([pair(C, A)], [A]).wrong, 1)

    def test_counts_events_without_a_pair_as_orphans(self):
        found = judged([pair(None, A), pair(B, B)], [A, B])
        self.assertEqual((found.seen, found.pairs, found.orphans), (2, 1, 1))
        self.assertEqual((found.precision, found.recall), (1.0, 0.5))

    def test_leaves_out_events_of_others(self):
        found = judged([pair(C, C), {"front": None, "behind": "PING"}, pair(A, A)], [A])
        self.assertEqual((found.foreign, found.seen, found.right), (2, 1, 1))

    def test_counts_requests_of_which_nothing_was_seen(self):
        found = judged([pair(A, A), pair(A, A)], [A, B])
        self.assertEqual((found.sent, found.seen, found.missing), (2, 2, 1))

    def test_has_no_shares_of_nothing(self):
        found = judged([], [A])
        self.assertEqual((found.precision, found.recall), (None, None))
        self.assertFalse(found.meets(0, 0))

    def test_meets_bounds_or_does_not(self):
        found = judged([pair(None, A), pair(B, B)], [A, B])
        self.assertTrue(found.meets(1, 0.5))
        self.assertFalse(found.meets(1, 0.51))
        self.assertFalse(judged([pair(B, A)], [A]).meets(0.5, 0))
        self.assertFalse(score.Score("hop", error="no request begins").meets(0, 0))

    def test_says_what_the_summary_says(self):
        self.assertIn("sound 2", score.line(judged([pair(A, A)], [A])))
        self.assertIn("no way", score.line(score.Score("hop", error="no way")))


if __name__ == "__main__":
    unittest.main()
