/* SPDX-License-Identifier: Apache-2.0 */
/* A signal that is sent: timeout ends its child. */
/* flags: -q -c "/usr/bin/timeout 0.05 /bin/sleep 5" */
proc:::signal-send
/pid == $target && args[2] == 15 && args[1]->pr_pid != pid && !n++/
{
	printf("%d\n", args[2]);
}
/* output:
15

*/
