#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What is wrong with a function of the kernel is said at its place, with the nearest name. Functions
# that nobody may probe (sched_clock is compiled without the place for it) are an error alone, and
# listed when a pattern has others, too.
# output:
# 1:11: error: no function 'vfs_raed' in the kernel; did you mean 'vfs_read'?
# 1:39: error: kernel("vfs_read") exports no 'cuont'; did you mean 'count'?
# no_such: error: no function 'vfs_read' in the kernel's module 'no_such'
# kernel("vfs_read")  (struct file * file, char * buf, size_t count, loff_t * pos) -> ssize_t
# kernel("null_blk!null_queue_rq")
# error: sched_clock: the kernel lists no such function as traceable
# "function":"sched_clock","kind":"entry","reason":"not-traceable"
wrong() {
  "$CLEW" run --for 1s "$1" 2>&1 | sed -n 's/^[^ ]*\(1:[0-9]*: error: .*\)/\1/p'
}
wrong 'from e in kernel("vfs_raed") select count()'
wrong 'from e in kernel("vfs_read") select e.cuont'
wrong 'kernel("no_such!vfs_read").Count()' | sed 's/^1:1:/no_such:/'
"$CLEW" list --kernel vfs_read
"$CLEW" list --kernel 'null_blk!null_queue_r[q]' | sed 's/  .*//'
"$CLEW" run --for 1s 'kernel("sched_clock").Count()' 2>&1 | sed -n 's/^clew: \(.*traceable\).*/\1/p'
"$CLEW" run --json -q --for 1s 'kernel("sched_[cg]*").Count()' |
  grep -o '"function":"sched_clock","kind":"entry","reason":"not-traceable"'
