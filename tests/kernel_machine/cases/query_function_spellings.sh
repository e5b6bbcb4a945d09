#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The three spellings of a query, Fay's and DTrace's names of the source, and a module's function,
# on the same reads and writes of dd.
# output:
# {"count":37}
# {"count":37}
# {"procName":"dd","sum(count)":37}
# {"Calls":37}
# {"count":37}
# {"count":37}
# {"blocks":16}
ask() {
  "$CLEW" run --json -q -c "$1" "$2" | grep -v summary
}
reader="dd if=/dev/zero of=/dev/null bs=1 count=37 status=none"
ask "$reader" 'from e in kernel("vfs_read") where e.count == 1 select count() as count'
ask "$reader" 'kernel("vfs_read").Where(e => e.count == 1).Count()'
ask "$reader" 'From read In kernel("vfs_read") Where read.count == 1
               GroupBy read.procName Select read.procName, SUM(read.count)'
ask "$reader" 'machine.Function(kernel, "vfs_read")
                 .Where(e => e.procName == "dd" && e.count == 1)
                 .GroupBy(e => e.pid)
                 .Select(g => new { Calls = g.Count() })'
ask "$reader" 'from e in probe("fbt::vfs_read:entry") where e.count == 1 select count() as count'
ask "$reader" 'from e in machine.Return(kernel, "vmlinux!vfs_read")
               where e.entry.count == 1 && e.procName == "dd" select count() as count'
ask "dd if=/dev/zero of=/dev/nullb0 bs=4096 count=16 oflag=direct status=none" \
    'from e in machine.Function(kernel, "null_blk!null_queue_rq") select count() as blocks'
