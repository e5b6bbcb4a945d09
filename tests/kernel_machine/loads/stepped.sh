#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A debugger steps through loads, one instruction after the other, and strace looks on.
# output:
# gdb stepped, also in the vDSO
# strace came and went
# all calls are hits
# the victim's results are right
exec python3 "$HERE/loads/stepped.py"
