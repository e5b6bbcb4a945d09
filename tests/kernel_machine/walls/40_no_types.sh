#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The kernel does not describe its types: processes are served, and who asks for more is told.
# output:
# the kernel does not describe its types (BTF)
# {"n":30}
# missed: {} lost: 0
# walled_work 30
# left: 0
# {"n":2}
# query:1:11: error: the kernel does not describe its types (no /sys/kernel/btf/vmlinux); it needs CONFIG_DEBUG_INFO_BTF
# dtrace: invalid probe specifier fbt::vfs_read:entry { exit(0); }: the kernel does not describe its types (no /sys/kernel/btf/vmlinux); it needs CONFIG_DEBUG_INFO_BTF
mount -t tmpfs none /sys/kernel/btf
"$CLEW" doctor | grep -o 'the kernel does not describe.*'
"$HERE/trace_victim" walled 'from e in entry("walled!walled_work") select count() as n' 'run 30' |
  grep -v inline
"$CLEW" run --json -c 'sh -c "cd /; cd /tmp"' \
  'from s in syscall("chdir") select count() as n' | grep -v summary
"$CLEW" run 'from k in kernel("vfs_read") select count() for 1s' 2>&1 | head -n 1
"$CLEW" dtrace -n 'fbt::vfs_read:entry { exit(0); }' 2>&1 | head -n 1
umount /sys/kernel/btf
