/* SPDX-License-Identifier: Apache-2.0 */
/* timeout makes one process, whose parent it is. */
/* flags: -q -c "/usr/bin/timeout 5 /bin/true" */
proc:::create
/pid == $target/
{
	printf("%d\n", args[0]->pr_pid != pid);
}
/* output:
1

*/
