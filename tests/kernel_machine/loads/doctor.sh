#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The doctor says by which way memory is read, of the machine and of a process.
# output:
# probes read memory by loads that cannot fault
# its memory is read by loads that cannot fault
# its memory is read by system calls: CLEW_NO_FAULT_FREE_LOAD is set
"$CLEW" doctor | grep -o 'probes read memory by loads that cannot fault'
"$CLEW" doctor -p $$ | grep -o 'its memory is read by.*'
CLEW_NO_FAULT_FREE_LOAD=1 "$CLEW" doctor -p $$ | grep -o 'its memory is read by.*'
