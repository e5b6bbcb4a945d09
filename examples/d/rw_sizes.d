#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How large are reads and writes? Many small ones cost more than few large ones.
 *
 *	clew dtrace -s rw_sizes.d		until Ctrl-C, all programs
 *	clew dtrace -s rw_sizes.d -c COMMAND	this command only
 *
 * For each program and call, how often a size was transferred, in powers of two; the row 1024
 * counts sizes of 1024 to 2047. Sizes are results, not what was asked for; row 0 is the end of a
 * file.
 */
#pragma D option quiet

BEGIN
{
	printf("Tracing sizes of reads and writes\n");
}

syscall::read:return, syscall::pread64:return, syscall::readv:return, syscall::recvfrom:return,
syscall::write:return, syscall::pwrite64:return, syscall::writev:return, syscall::sendto:return
/errno == 0 && (pid == $target || $target == 0) && pid != $pid/
{
	@sizes[execname, probefunc] = quantize(arg1);
}
