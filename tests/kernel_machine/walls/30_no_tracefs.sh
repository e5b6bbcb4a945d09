#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Nobody has mounted tracefs, debugfs or bpffs: root's session of the kernel mounts what it needs.
# output:
# tracefs describes them
# {"n":4}
umount /sys/kernel/debug /sys/kernel/tracing
"$CLEW" doctor | grep -o 'tracefs describes them'
"$CLEW" run --json -c 'sh -c "cd /; cd /tmp; cd /; cd /tmp"' \
  'from s in syscall("chdir") select count() as n' | grep -v summary
mount -t tracefs tracefs /sys/kernel/tracing
