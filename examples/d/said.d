#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What does a program write to its standard output and error, wherever they go?
 *
 *	clew dtrace -s said.d -p PID		until Ctrl-C
 *	clew dtrace -s said.d -c COMMAND
 *
 * The text itself, up to 1023 bytes of each write.
 */
#pragma D option quiet
#pragma D option strsize=1024

syscall::write:entry
/pid == $target && (arg0 == 1 || arg0 == 2)/
{
	self->text = arg1;
}

syscall::write:return
/self->text && errno == 0/
{
	printf("%s", stringof(copyin(self->text, arg1 < 1023 ? arg1 : 1023)));
}

syscall::write:return
{
	self->text = 0;
}
