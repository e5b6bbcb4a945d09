/* SPDX-License-Identifier: Apache-2.0 */
/* The sleeper is woken. */
/* flags: -q -c "/bin/sleep 0.05" */
sched:::wakeup
/args[1]->pr_pid == $target/
{
	n++;
}
END
{
	printf("%d\n", n > 0);
}
/* output:
1

*/
