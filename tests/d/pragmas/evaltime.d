/* SPDX-License-Identifier: Apache-2.0 */
/* In a program it comes too late for commands, and is let stand, as DTrace does. */
/* output:
ok
*/
#pragma D option evaltime=main
BEGIN
{
	trace("ok");
	exit(0);
}
