#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Addresses of 57 bits, page tables of the kernel's own, a clock that is not the time stamp counter.
# output:
# la57
# Kernel/User page tables isolation: enabled
# the kernel uses hpet: elapsed times may drift
grep -o -w -m 1 la57 /proc/cpuinfo
dmesg | grep -o 'Kernel/User page tables isolation: enabled'
"$CLEW" doctor | grep -o 'the kernel uses.*'
