/* SPDX-License-Identifier: Apache-2.0 */
/* A process that a signal ends: 2, and only once. */
/* flags: -q -c "/bin/bash -c '(kill -TERM $BASHPID); true'" */
proc:::exit
/ppid == $target/
{
	printf("%d\n", args[0]);
}
/* output:
2

*/
