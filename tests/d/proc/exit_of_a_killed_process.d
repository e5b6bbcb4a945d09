/* SPDX-License-Identifier: Apache-2.0 */
/* args[0] of exit is 2 when a signal killed the process. */
/* flags: -q -c "/usr/bin/timeout 0.05 /bin/sleep 5" */
proc:::exit
/ppid == $target/
{
	printf("%d\n", args[0]);
}
/* output:
2

*/
