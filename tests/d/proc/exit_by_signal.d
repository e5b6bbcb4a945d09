/* SPDX-License-Identifier: Apache-2.0 */
/* A process that a signal ends: 2, and only once. */
/* flags: -q -c "/usr/bin/timeout 0.05 /bin/sleep 5" */
proc:::exit
/ppid == $target/
{
	printf("%d\n", args[0]);
}
/* output:
2

*/
