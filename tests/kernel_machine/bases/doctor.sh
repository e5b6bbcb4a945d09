#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The machine is what this is about, and the doctor says what that means.
# output:
# programs may not set gs
"$CLEW" doctor | grep -o 'programs may not set gs'
