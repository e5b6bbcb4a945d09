#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Memory that must not be loaded: a file that a process serves (FUSE), what is below a stack of the
# program's own, and both when they are mapped later, also by a followed child.
# output:
# OddMemory.OfAFileThatAProcessServesIsReadByTheKernel
# OddMemory.BelowAStackOfTheProgramsOwnIsReadByTheKernelAndStaysAsItIs
# LaterOddMemory.OfAFileThatAProcessServesEndsLoads
# LaterOddMemory.BelowAStackOfTheProgramsOwnEndsLoads
# LaterOddMemory.OfAFollowedChildEndsLoads
"$LIVE_TEST" --gtest_filter='*OddMemory.*' > /tmp/tests || cat /tmp/tests
sed -n 's/^\[       OK \] \([^ ]*\).*/\1/p' /tmp/tests
