#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From where does a C++ program throw exceptions?
 *
 *	clew dtrace -s cxx_exceptions.d -p PID		until Ctrl-C
 *	clew dtrace -s cxx_exceptions.d -c COMMAND
 *
 * User stacks with the number of exceptions thrown there.
 */
#pragma D option quiet

BEGIN
{
	printf("Tracing exceptions of process %d\n", $target);
}

pid$target:libstdc*:__cxa_throw:entry
{
	@thrown[ustack(12)] = count();
}
