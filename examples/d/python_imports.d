#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which modules does a Python program import, and how long does each take?
 *
 *	clew dtrace -s python_imports.d -c COMMAND
 *
 * TIME(us)	with all that the module imports itself; a module's parts are above it
 * MODULE	its name, indented by how deep the import was; (missing) when there is none
 *
 * The interpreter must have been built with --with-dtrace, as Debian's is.
 */
#pragma D option quiet

BEGIN
{
	printf("%10s %s\n", "TIME(us)", "MODULE");
}

python$target:::import-find-load-start
{
	self->depth++;
	self->start[self->depth] = timestamp;
}

python$target:::import-find-load-done
/self->start[self->depth]/
{
	printf("%10d %*s%s%s\n", (timestamp - self->start[self->depth]) / 1000, 2 * (self->depth - 1), "",
	    copyinstr(arg0), arg1 ? "" : " (missing)");
	self->start[self->depth] = 0;
	self->depth--;
}
