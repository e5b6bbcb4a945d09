#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Random calls of a function of the kernel, counted there and by the evaluator: the same rows, of
# each fourth query of those that src/engine compares. (Without kprobes it skips all of them.)
# output:
# [  PASSED  ]
export GTEST_TOTAL_SHARDS=4 GTEST_SHARD_INDEX=0
"$ENGINE_TEST" --gtest_brief=1 --gtest_filter='KernelTracee/Equivalence.OfAFunction*' |
  grep -v '^Running main\|^Note\|^\[=' | sed 's/^\(\[  PASSED  \]\).*/\1/'
