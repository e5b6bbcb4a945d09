#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long do disks take for a request?
 *
 *	clew dtrace -s block_latency.d		until Ctrl-C
 *
 * For each disk a distribution of microseconds from the issue of a request to its completion, as
 * the device sees it: time in the kernel's queue is not in it.
 */
#pragma D option quiet

BEGIN
{
	printf("Tracing disk requests, until Ctrl-C\n");
}

sdt:::block_rq_issue
{
	issued[arg0] = timestamp;
}

sdt:::block_rq_complete
/issued[arg0]/
{
	@latency[stringof(args[0]->q->disk->disk_name)] = quantize((timestamp - issued[arg0]) / 1000);
	issued[arg0] = 0;
}
