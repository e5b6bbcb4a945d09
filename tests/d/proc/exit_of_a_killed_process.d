/* SPDX-License-Identifier: Apache-2.0 */
/* args[0] of exit is 2 when a signal killed the process. */
/* flags: -q -c "/bin/bash -c '(kill -TERM $BASHPID); true'" */
proc:::exit
/ppid == $target/
{
	printf("%d\n", args[0]);
}
/* output:
2

*/
