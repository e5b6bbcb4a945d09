#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The spellings of a query besides comprehensions, and Fay's and DTrace's names of the source, of
# the same reads of dd. A module's function is called by whoever writes its blocks.
# output:
# {"count":37}
# {"procName":"dd","sum(count)":37}
# {"Calls":37}
# {"blocks":16}
ask() {
  "$CLEW" run --json -q -c "$1" "$2" | grep -v summary
}
reader="dd if=/dev/zero of=/dev/null bs=1 count=37 status=none"
ask "$reader" 'kernel("vfs_read").Where(e => e.count == 1).Count()'
ask "$reader" 'From read In probe("fbt::vfs_read:entry") Where read.count == 1
               GroupBy read.procName Select read.procName, SUM(read.count)'
ask "$reader" 'machine.Return(kernel, "vmlinux!vfs_read")
                 .Where(e => e.procName == "dd" && e.entry.count == 1)
                 .GroupBy(e => e.pid)
                 .Select(g => new { Calls = g.Count() })'
ask "dd if=/dev/zero of=/dev/nullb0 bs=4096 count=16 oflag=direct status=none" \
    'from e in machine.Function(kernel, "null_blk!null_queue_rq") select count() as blocks'
