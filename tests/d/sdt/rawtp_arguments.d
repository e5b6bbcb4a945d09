/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of a raw tracepoint are typed. */
/* flags: -q -c "/bin/sleep 0.05" */
rawtp:::sched_process_exit
/args[0]->tgid == $target/
{
	printf("%d %s\n", args[0]->tgid == pid, stringof(args[0]->comm));
}
/* output:
1 sleep

*/
