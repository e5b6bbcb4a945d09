#!/usr/bin/env -S clew dtrace -s
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which functions of a program call which, in order, and how does each return?
 *
 *	clew dtrace -s flow.d -c COMMAND MODULE		MODULE: the program's file name, or a library's
 *	clew dtrace -s flow.d -p PID MODULE
 *
 * One line for each entry and return, indented by depth. The second column is the first argument at
 * an entry and the result at a return, in hexadecimal.
 *
 * All functions of the module are traced: for a large one this is much.
 */
#pragma D option flowindent

pid$target:$1::entry
{
	printf("0x%x", arg0);
}

pid$target:$1::return
{
	printf("0x%x", arg1);
}
