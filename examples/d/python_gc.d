#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long does Python's garbage collector stop a program?
 *
 *	clew dtrace -s python_gc.d -c COMMAND
 *	clew dtrace -s python_gc.d -p PID		until Ctrl-C
 *
 * For each generation a distribution of nanoseconds, and how many objects were freed in all.
 */
#pragma D option quiet

python$target:::gc-start
{
	self->start = timestamp;
	self->generation = arg0;
}

python$target:::gc-done
/self->start/
{
	@pauses[self->generation] = quantize(timestamp - self->start);
	@freed = sum(arg0);
	self->start = 0;
}

END
{
	printf("nanoseconds by generation:\n");
	printa(@pauses);
	printa("objects freed: %@d\n", @freed);
}
